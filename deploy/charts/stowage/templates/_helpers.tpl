{{/* Names follow the backend, not the release: a driver is one in a cluster, as its CSIDriver is. */}}
{{- define "stowage.name" -}}stowage-{{ .Values.backend }}{{- end }}
{{- define "stowage.driver" -}}{{ .Values.backend }}.csi.stowage.dev{{- end }}
{{- define "stowage.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{/* What follows from the backend. A value that says otherwise is an installation that cannot work. */}}
{{- define "stowage.attaches" -}}{{ if not (has .Values.backend (list "local" "nfs")) }}true{{ end }}{{- end }}
{{- define "stowage.capacity" -}}{{ if eq .Values.backend "local" }}true{{ end }}{{- end }}
{{- define "stowage.nodeOnHost" -}}{{ if or (eq .Values.backend "nfs") .Values.node.hostNetwork }}true{{ end }}{{- end }}

{{/* Whether csi-snapshotter takes snapshots of groups. Only local and nfs can, and nfs only where it is asked for. */}}
{{- define "stowage.groups" -}}
{{- $given := get .Values.sidecars.snapshotter "groups" -}}
{{- $on := ternary (eq (toString $given) "true") (eq .Values.backend "local") (kindIs "bool" $given) -}}
{{- if and .Values.sidecars.snapshotter.enabled (has .Values.backend (list "local" "nfs")) $on }}true{{ end -}}
{{- end }}
{{/* The argument by which it does, in the form of toJson. */}}
{{- define "stowage.groupArgs" -}}
{{ ternary (list "--feature-gates=CSIVolumeGroupSnapshot=true") list (eq (include "stowage.groups" .) "true") | toJson }}
{{- end }}

{{/* Fails where a value is given and is not what the backend needs. */}}
{{- define "stowage.checkBackend" -}}
{{- $attaches := eq (include "stowage.attaches" .) "true" -}}
{{- $capacity := eq (include "stowage.capacity" .) "true" -}}
{{- $values := list
      (dict "name" "csiDriver.attachRequired" "given" (get .Values.csiDriver "attachRequired") "needs" $attaches)
      (dict "name" "csiDriver.storageCapacity" "given" (get .Values.csiDriver "storageCapacity") "needs" $capacity) -}}
{{- if ne (include "stowage.attaches" .) "true" -}}
{{- $values = append $values (dict "name" "node.hostNetwork" "given" (get .Values.node "hostNetwork") "needs" (eq .Values.backend "nfs")) -}}
{{- end -}}
{{- range $values -}}
{{- if and (kindIs "bool" .given) (ne .given .needs) -}}
{{- fail (printf "%s is %t, and the backend %s works with %t only: leave it out" .name .given $.Values.backend .needs) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/*
What a pod tolerates: dict "root" $ "own" (a value). Where new nodes wait for the driver, the driver must start there,
and the manager too where all nodes are new, or no taint ever goes.
*/}}
{{- define "stowage.tolerations" -}}
{{- $manager := .root.Values.manager -}}
{{- $all := .own -}}
{{- $everything := false -}}
{{- range .own -}}
{{- if and (eq (get . "operator") "Exists") (not (get . "key")) (not (get . "effect")) -}}
{{- $everything = true -}}
{{- end -}}
{{- end -}}
{{- if and $manager.enabled $manager.startupTaint.enabled (not $everything) -}}
{{- $all = append $all (dict "key" (printf "%s/agent-not-ready" (include "stowage.driver" .root)) "operator" "Exists") -}}
{{- end -}}
{{- toYaml $all -}}
{{- end }}

{{/* Where the pods of each node run: dict "root" $ "own" (a value). A virtual node runs no pod that mounts, and the pod of a set
for all nodes would stay pending there. "hybrid" is a node of EKS outside of EC2. */}}
{{- define "stowage.onMachines" -}}
{{- with .own }}
{{- toYaml . }}
{{- else -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          - key: type
            operator: NotIn
            values: [virtual-kubelet]
          - key: eks.amazonaws.com/compute-type
            operator: NotIn
            values: [fargate{{ if eq .root.Values.backend "ebs" }}, hybrid{{ end }}]
{{- end }}
{{- end }}

{{/* Fails where a part of the manager is turned on and the manager is not: nothing would run, and nobody would know. */}}
{{- define "stowage.checkManager" -}}
{{- $manager := .Values.manager -}}
{{- $parts := dict "failover.enabled" $manager.failover.enabled "orphans.enabled" $manager.orphans.enabled "startupTaint.enabled" $manager.startupTaint.enabled "extraArgs" $manager.extraArgs -}}
{{- range $name, $given := $parts -}}
{{- if and $given (not $manager.enabled) -}}
{{- fail (printf "manager.%s is given, and no manager runs that would heed it: set manager.enabled=true, or leave it out" $name) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "stowage.labels" -}}
app.kubernetes.io/instance: {{ include "stowage.name" . }}
app.kubernetes.io/name: stowage
app.kubernetes.io/part-of: stowage
{{- end }}

{{/* A port on a node belongs to one process. The controller of nfs is in its node's network, beside the node's pod, and a pod of ebs
may be beside both: each has ports of its own. Beside the values: "controller". */}}
{{- define "stowage.onHost" -}}{{ if and .controller (eq .Values.backend "nfs") }}true{{ end }}{{- end }}
{{- define "stowage.portShift" -}}
{{- if include "stowage.onHost" . -}}10
{{- else if and (not .controller) (eq .Values.backend "ebs") .Values.node.hostNetwork -}}20
{{- else -}}0{{- end -}}
{{- end }}
{{- define "stowage.metricsPort" -}}{{ add .Values.metricsPort (include "stowage.portShift" . | int) }}{{- end }}
{{- define "stowage.healthPort" -}}{{ add 9809 (include "stowage.portShift" . | int) }}{{- end }}
{{- define "stowage.registrarPort" -}}{{ add 9814 (include "stowage.portShift" . | int) }}{{- end }}

{{- define "stowage.podAnnotations" -}}
kubectl.kubernetes.io/default-container: stowage
prometheus.io/port: {{ include "stowage.metricsPort" . | quote }}
prometheus.io/scrape: "true"
{{- with .Values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "stowage.podLabels" -}}
{{- with .Values.podLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What automounting would give to every container. */}}
{{- define "stowage.apiVolume" -}}
- name: api
  projected:
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3607
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
      - downwardAPI:
          items:
            - path: namespace
              fieldRef:
                fieldPath: metadata.namespace
{{- end }}

{{/* The driver's --config where controller and nodes are apart. Local volumes have one always, because their pods name it. */}}
{{- define "stowage.config" -}}
{{- if include "stowage.cluster" . }}
{{- toYaml .Values.local.config }}
{{- else if ne .Values.backend "local" }}
{{- with get .Values .Values.backend }}{{ with .config }}{{ toYaml . }}{{ end }}{{ end }}
{{- end }}
{{- end }}
{{- define "stowage.configured" -}}{{ if include "stowage.config" . }}true{{ end }}{{- end }}
{{- define "stowage.configVolume" -}}
{{- if include "stowage.configured" . }}
- name: config
  configMap:
    name: {{ include "stowage.name" . }}-config
{{- end }}
{{- end }}
{{- define "stowage.configMount" -}}
{{- if include "stowage.configured" . }}
- name: config
  mountPath: /etc/stowage
  readOnly: true
{{- end }}
{{- end }}
{{- define "stowage.configSum" -}}
{{- if include "stowage.configured" . }}
checksum/config: {{ include "stowage.config" . | sha256sum }}
{{- end }}
{{- end }}

{{/* Where EC2 is and who asks it, as far as the values say so. A variable that is there and empty would keep EKS's webhook from setting it.
The keys can delete volumes: no node has them. Beside the values: "controller". */}}
{{- define "stowage.awsEnv" -}}
{{- if eq .Values.backend "ebs" }}
{{- with .Values.ebs.region }}
- name: AWS_REGION
  value: {{ . | quote }}
{{- end }}
{{- if and .controller .Values.ebs.credentialsSecret }}
{{- range $name, $key := dict "AWS_ACCESS_KEY_ID" "key_id" "AWS_SECRET_ACCESS_KEY" "access_key" }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $.Values.ebs.credentialsSecret }}
      key: {{ $key }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Variables of the driver in addition to those that the chart sets. */}}
{{- define "stowage.extraEnv" -}}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Whether the driver asks Kubernetes which cluster this is. */}}
{{- define "stowage.asksCluster" -}}
{{- if and (eq .Values.backend "ebs") (not .Values.ebs.config.clusterID) }}true{{ end }}
{{- end }}

{{/* With IRSA and with EKS Pod Identity: the containers that are given no token for the role in AWS. */}}
{{- define "stowage.awsSkip" -}}
{{- if eq .root.Values.backend "ebs" }}
eks.amazonaws.com/skip-containers: {{ .containers }}
{{- end }}
{{- end }}

{{- define "stowage.tight" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
readOnlyRootFilesystem: true
{{- end }}

{{/* Beside a driver that is root: of root's group only, which the driver's socket lets in. */}}
{{- define "stowage.tightBesideRoot" -}}
{{ include "stowage.tight" . }}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 0
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* Whether the driver lives is asked of its socket, which no stuck volume can hold up. What fails is a process that is
itself stuck, and one beside which no program starts for some 100 s: the probe may have to be read from the disk of the
container's root, which can stall. Not by a port, which a peer on the network could keep from answering.
"grace": the seconds that a process is given to end whose probe fails, if these are not the pod's. */}}
{{- define "stowage.probes" -}}
startupProbe:
  exec:
    command: [/stowage, probe, "--endpoint=unix:///csi/csi.sock"]
  periodSeconds: 5
  timeoutSeconds: 10
  failureThreshold: 60
  {{- with .grace }}
  terminationGracePeriodSeconds: {{ . }}
  {{- end }}
livenessProbe:
  exec:
    command: [/stowage, probe, "--endpoint=unix:///csi/csi.sock"]
  periodSeconds: 20
  timeoutSeconds: 10
  failureThreshold: 5
  {{- with .grace }}
  terminationGracePeriodSeconds: {{ . }}
  {{- end }}
readinessProbe:
  httpGet:
    path: /healthz
    port: metrics
  periodSeconds: 10
terminationMessagePolicy: FallbackToLogsOnError
{{- end }}

{{- define "stowage.ports" -}}
ports:
  - name: metrics
    containerPort: {{ include "stowage.metricsPort" . }}
{{- end }}

{{- define "stowage.heap" -}}
- name: GOMEMLIMIT
  value: {{ .Values.memoryTarget }}
{{- end }}

{{- define "stowage.driverArgs" -}}
- --http-endpoint=:{{ include "stowage.metricsPort" . }}
- --log-format={{ .Values.log.format }}
- --v={{ .Values.log.level }}
- --max-open-files={{ .Values.maxOpenFiles }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
A sidecar that speaks to the API server: dict "root" $ "name" … "port" … "args" (list) "env" (list of name and field path)
"socket" (the volume with the driver's socket) "split" (whether there are replicas, of which a Lease chooses one).
*/}}
{{- define "stowage.sidecar" -}}
{{- $values := index .root.Values.sidecars .name -}}
- name: csi-{{ .name }}
  image: {{ $values.image }}
  imagePullPolicy: IfNotPresent
  args:
    - --csi-address=/csi/csi.sock
    - --http-endpoint=:{{ .port }}
    {{- if .split }}
    - --leader-election=true
    - --leader-election-namespace=$(NAMESPACE)
    {{- end }}
    {{- range .args }}
    - {{ . }}
    {{- end }}
    - --retry-interval-max=1m
    - --kube-api-qps=50
    - --kube-api-burst=100
    - --v={{ .root.Values.log.level }}
    {{- with $values.extraArgs }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .env }}
  env:
    {{- range $name, $path := . }}
    - name: {{ $name }}
      valueFrom:
        fieldRef:
          fieldPath: {{ $path }}
    {{- end }}
  {{- end }}
  ports:
    - name: {{ .name }}
      containerPort: {{ .port }}
  {{- if .split }}
  livenessProbe:
    httpGet:
      path: /healthz/leader-election
      port: {{ .name }}
    initialDelaySeconds: 10
    periodSeconds: 20
    timeoutSeconds: 10
  {{- end }}
  resources: {{- toYaml $values.resources | nindent 4 }}
  securityContext: {{- include (ternary "stowage.tight" "stowage.tightBesideRoot" .split) .root | nindent 4 }}
  volumeMounts:
    - name: {{ .socket }}
      mountPath: /csi
    - name: api
      mountPath: /var/run/secrets/kubernetes.io/serviceaccount
      readOnly: true
{{- end }}

{{- define "stowage.livenessProbe" -}}
{{- $port := include "stowage.healthPort" (dict "Values" .root.Values "controller" .split) -}}
- name: liveness-probe
  image: {{ .root.Values.sidecars.livenessProbe.image }}
  imagePullPolicy: IfNotPresent
  args:
    - --csi-address=/csi/csi.sock
    - --http-endpoint=127.0.0.1:{{ $port }}
    - --v={{ .root.Values.log.level }}
    {{- with .root.Values.sidecars.livenessProbe.extraArgs }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  ports:
    - name: healthz
      containerPort: {{ $port }}
  resources: {{- toYaml .root.Values.sidecars.livenessProbe.resources | nindent 4 }}
  securityContext: {{- include (ternary "stowage.tight" "stowage.tightBesideRoot" .split) .root | nindent 4 }}
  volumeMounts:
    - name: {{ .socket }}
      mountPath: /csi
{{- end }}

{{/* The manager of PersistentVolumeSets. Beside the values, "socket" and "split" as for a sidecar. */}}
{{- define "stowage.manager" -}}
- name: manager
  image: {{ include "stowage.image" .root }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  command: [/stowage-manager]
  args:
    - --csi-address=/csi/csi.sock
    - --namespace=$(NAMESPACE)
    - --http-endpoint=:9815
    - --log-format={{ .root.Values.log.format }}
    - --v={{ .root.Values.log.level }}
    {{- if .root.Values.manager.orphans.enabled }}
    - --orphan-period=20s
    - --detach-dangling
    {{- end }}
    {{- if .root.Values.manager.failover.enabled }}
    - --failover
    - --serve-holds=unix:///csi/holds.sock
    {{- end }}
    {{- if .root.Values.manager.startupTaint.enabled }}
    - --startup-taint
    {{- end }}
    {{- with .root.Values.manager.extraArgs }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  env:
    - name: NAMESPACE
      valueFrom:
        fieldRef:
          fieldPath: metadata.namespace
  ports:
    - name: manager
      containerPort: 9815
  livenessProbe:
    httpGet:
      path: /healthz
      port: manager
    initialDelaySeconds: 10
    periodSeconds: 20
    timeoutSeconds: 10
  readinessProbe:
    httpGet:
      path: /readyz
      port: manager
    periodSeconds: 10
  resources: {{- toYaml .root.Values.manager.resources | nindent 4 }}
  securityContext: {{- include (ternary "stowage.tight" "stowage.tightBesideRoot" .split) .root | nindent 4 }}
  volumeMounts:
    - name: {{ .socket }}
      mountPath: /csi
    - name: api
      mountPath: /var/run/secrets/kubernetes.io/serviceaccount
      readOnly: true
{{- end }}

{{/* Root as the owner of the kubelet's folder of plugins, without any of root's capabilities. */}}
{{- define "stowage.registrar" -}}
- name: node-driver-registrar
  image: {{ .Values.sidecars.registrar.image }}
  imagePullPolicy: IfNotPresent
  args:
    - --csi-address=/csi/csi.sock
    - --kubelet-registration-path={{ .Values.kubeletDir }}/plugins/{{ include "stowage.driver" . }}/csi.sock
    - --http-endpoint=:{{ include "stowage.registrarPort" . }}
    - --v={{ .Values.log.level }}
    {{- with .Values.sidecars.registrar.extraArgs }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  ports:
    - name: registrar
      containerPort: {{ include "stowage.registrarPort" . }}
  livenessProbe:
    httpGet:
      path: /healthz
      port: registrar
    initialDelaySeconds: 10
    periodSeconds: 20
    timeoutSeconds: 5
  resources: {{- toYaml .Values.sidecars.registrar.resources | nindent 4 }}
  securityContext:
    {{- include "stowage.tight" . | nindent 4 }}
    runAsUser: 0
    seccompProfile:
      type: RuntimeDefault
  volumeMounts:
    - name: plugin
      mountPath: /csi
    - name: registration
      mountPath: /registration
{{- end }}

{{- define "stowage.nodeVolumes" -}}
- name: plugin
  hostPath:
    path: {{ .Values.kubeletDir }}/plugins/{{ include "stowage.driver" . }}
    type: DirectoryOrCreate
- name: registration
  hostPath:
    path: {{ .Values.kubeletDir }}/plugins_registry
    type: Directory
- name: kubelet
  hostPath:
    path: {{ .Values.kubeletDir }}
    type: Directory
- name: dev
  hostPath:
    path: /dev
    type: Directory
{{- end }}

{{/* The driver that makes and mounts the local volumes of a node, without what it mounts: the forms list that in an order of their own. */}}
{{- define "stowage.localDriver" -}}
- name: stowage
  image: {{ include "stowage.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args:
    - standalone
    - --backend={{ .Values.backend }}
    - --endpoint=unix:///csi/csi.sock
    - --data-dir={{ .Values.local.dataDir }}
    - --node-id=$(NODE_NAME)
    - --config=/etc/stowage/config.yaml
    {{- include "stowage.driverArgs" . | nindent 4 }}
  env:
    - name: NODE_NAME
      valueFrom:
        fieldRef:
          fieldPath: spec.nodeName
    {{- include "stowage.heap" . | nindent 4 }}
    {{- include "stowage.extraEnv" . | indent 4 }}
  {{- include "stowage.ports" . | nindent 2 }}
  {{- include "stowage.probes" . | nindent 2 }}
  terminationMessagePath: /run/termination-log
  resources: {{- toYaml .Values.resources | nindent 4 }}
  securityContext:
    privileged: true
    readOnlyRootFilesystem: true
    runAsUser: 0
{{- end }}

{{/* Pools outside the data directory, which is mounted as a whole. */}}
{{- define "stowage.poolMounts" -}}
{{- range $i, $pool := .Values.local.config.pools }}
{{- if and $pool.path (not (hasPrefix (print $.Values.local.dataDir "/") $pool.path)) }}
- name: pool-{{ $i }}
  mountPath: {{ $pool.path }}
  mountPropagation: HostToContainer
{{- end }}
{{- end }}
{{- end }}
{{- define "stowage.poolVolumes" -}}
{{- range $i, $pool := .Values.local.config.pools }}
{{- if and $pool.path (not (hasPrefix (print $.Values.local.dataDir "/") $pool.path)) }}
# Directory: a disk that is not mounted must not be taken for an empty one.
- name: pool-{{ $i }}
  hostPath:
    path: {{ $pool.path }}
    type: Directory
{{- end }}
{{- end }}
{{- end }}
