{{/* Local volumes of a cluster, as in deploy/kubernetes/local-volumes, with found disks, which have the same master. */}}
{{- define "stowage.cluster" -}}
{{ if and (eq .Values.backend "local") (eq .Values.local.mode "cluster") }}true{{ end }}
{{- end }}
{{- define "stowage.standalone" -}}
{{ if and (eq .Values.backend "local") (ne .Values.local.mode "cluster") }}true{{ end }}
{{- end }}

{{/* What selects all pods of the release. */}}
{{- define "stowage.instances" -}}
{{- if include "stowage.cluster" . -}}
'app.kubernetes.io/instance in (stowage-local, stowage-disks)'
{{- else -}}
app.kubernetes.io/instance={{ include "stowage.name" . }}
{{- end -}}
{{- end }}

{{/* Fails where the cluster form would not start, would offer nothing, or would not do what a value says. */}}
{{- define "stowage.checkCluster" -}}
{{- if include "stowage.cluster" . -}}
{{- if semverCompare "<1.31-0" .Capabilities.KubeVersion.Version -}}
{{- fail (printf "local.mode is cluster, and Kubernetes is %s: it needs 1.31 or newer"
      .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if .Values.manager.enabled -}}
{{- fail "manager.enabled is true, and local.mode is cluster, which has no manager of volume sets: leave it out" -}}
{{- end -}}
{{- if has (int .Values.metricsPort) (list 9816 9817) -}}
{{- fail (printf "metricsPort is %d, which is a worker's with local.mode=cluster: choose another"
      (int .Values.metricsPort)) -}}
{{- end -}}
{{- include "stowage.checkDisks" .Values.local.disks -}}
{{- include "stowage.checkPools" .Values.local -}}
{{- end -}}
{{- end }}

{{/* The master offers no filesystem but right below its directories, and who opens disks sees no others. */}}
{{- define "stowage.checkDisks" -}}
{{- if not (or .config.devices .config.mountPoints) -}}
{{- fail "local.disks.config has neither devices nor mountPoints: give one of them, or nothing could be found" -}}
{{- end -}}
{{- $directories := .mountDirectories -}}
{{- range .config.mountPoints -}}
{{- range .paths -}}
{{- if not (or (regexMatch "[*?\\[\\\\]" (dir .)) (has (dir .) $directories)) -}}
{{- fail (print "local.disks.config.mountPoints has the path " . ", and nothing right below " (dir .)
      " is offered: add that directory to local.disks.mountDirectories") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A filesystem that is offered is emptied when it comes back, whatever else is on it. */}}
{{- define "stowage.checkPools" -}}
{{- $local := . -}}
{{- range $directory := .disks.mountDirectories -}}
{{- if hasPrefix (print $directory "/") (print (clean $local.dataDir) "/") -}}
{{- fail (print "local.dataDir is " $local.dataDir ", where filesystems are offered and emptied: choose a path that is"
      " not in local.disks.mountDirectories") -}}
{{- end -}}
{{- range $local.config.pools -}}
{{- if and .path (hasPrefix (print $directory "/") (print (clean .path) "/")) -}}
{{- fail (print "the pool " .name " of local.config has the path " .path ", where filesystems are offered and emptied:"
      " choose a path that is not in local.disks.mountDirectories") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "stowage.disksLabels" -}}
app.kubernetes.io/instance: stowage-disks
app.kubernetes.io/name: stowage
app.kubernetes.io/part-of: stowage
{{- end }}
{{- define "stowage.disksDir" -}}{{ .Values.local.dataDir }}/disks{{- end }}

{{/*
The master or a worker, without its securityContext and what it mounts: dict "root" $ "command" … "name" … "port" …
"args" (list) "more" (list, behind all others) "env" (list of name and field path) "resources" ….
*/}}
{{- define "stowage.agent" -}}
- name: {{ .name }}
  image: {{ include "stowage.image" .root }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  command: [/stowage-manager]
  args:
    - {{ .command }}
    - --namespace=$(NAMESPACE)
    {{- range .args }}
    - {{ . }}
    {{- end }}
    - --http-endpoint=:{{ .port }}
    - --log-format={{ .root.Values.log.format }}
    - --v={{ .root.Values.log.level }}
    {{- with .more }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  env:
    {{- range $name, $path := .env }}
    - name: {{ $name }}
      valueFrom:
        fieldRef:
          fieldPath: {{ $path }}
    {{- end }}
  ports:
    - name: {{ .name }}
      containerPort: {{ .port }}
  livenessProbe:
    httpGet:
      path: /healthz
      port: {{ .name }}
    initialDelaySeconds: 10
    periodSeconds: 20
    timeoutSeconds: 10
  readinessProbe:
    httpGet:
      path: /readyz
      port: {{ .name }}
    periodSeconds: 10
  resources: {{- toYaml .resources | nindent 4 }}
{{- end }}

{{/* For a Prometheus of pods: dict "root" $ "port" …. */}}
{{- define "stowage.agentAnnotations" -}}
prometheus.io/port: {{ .port | quote }}
prometheus.io/scrape: "true"
{{- with .root.Values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Where the pods of a node run. */}}
{{- define "stowage.onNodes" -}}
priorityClassName: system-node-critical
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
nodeSelector: {{- toYaml .Values.local.nodeSelector | nindent 2 }}
affinity: {{- include "stowage.onMachines" (dict "root" . "own" .Values.local.affinity) | nindent 2 }}
tolerations: {{- toYaml .Values.local.tolerations | nindent 2 }}
{{- end }}
