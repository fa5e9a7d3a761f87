{{/* Fails where a label or a variable would replace one of the chart. */}}
{{- define "stowage.checkExtras" -}}
{{- range $name, $value := .Values.podLabels -}}
{{- if has $name (list "app.kubernetes.io/instance" "app.kubernetes.io/name" "app.kubernetes.io/part-of"
      "app.kubernetes.io/component") -}}
{{- fail (printf "podLabels has %s, by which the chart finds its pods: leave it out" $name) -}}
{{- end -}}
{{- end -}}
{{- $ours := list "NODE_NAME" "GOMEMLIMIT" -}}
{{- if and (eq .Values.backend "ebs") .Values.ebs.region -}}
{{- $ours = append $ours "AWS_REGION" -}}
{{- end -}}
{{- if and (eq .Values.backend "ebs") .Values.ebs.credentialsSecret -}}
{{- $ours = concat $ours (list "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY") -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- if or (has .name $ours) (hasPrefix "TOPOLOGY_" .name) -}}
{{- fail (printf "extraEnv has %s, which the chart sets, or which is there twice: leave it out" .name) -}}
{{- end -}}
{{- $ours = append $ours .name -}}
{{- end -}}
{{- end }}

{{/* Fails where a class could not be served, or where nothing would serve it. */}}
{{- define "stowage.checkClasses" -}}
{{- $snapshotter := .Values.sidecars.snapshotter -}}
{{- range $name := list "volumeSnapshotClasses" "volumeGroupSnapshotClasses" -}}
{{- if and (get $.Values $name) (not $snapshotter.enabled) -}}
{{- fail (printf "%s are given, and sidecars.snapshotter.enabled is false: nothing would take their snapshots" $name) -}}
{{- end -}}
{{- end -}}
{{- if and (eq (toString (get $snapshotter "groups")) "true") (not (has .Values.backend (list "local" "nfs"))) -}}
{{- fail (printf "sidecars.snapshotter.groups is true, and the backend %s takes no snapshots of groups: leave it out"
      .Values.backend) -}}
{{- end -}}
{{- if and .Values.volumeGroupSnapshotClasses (not (include "stowage.groups" .)) -}}
{{- fail (printf "volumeGroupSnapshotClasses are given, and this release of %s takes no snapshots of groups: %s"
      .Values.backend (ternary "set sidecars.snapshotter.groups=true" "leave them out"
      (has .Values.backend (list "local" "nfs")))) -}}
{{- end -}}
{{- if and .Values.volumeAttributesClasses (semverCompare "<1.34-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "volumeAttributesClasses are given, and Kubernetes is %s: they came with 1.34. Leave them out"
      .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end }}

{{/* Fails where a port would be beyond the last. */}}
{{- define "stowage.checkPorts" -}}
{{- range $controller := list false true -}}
{{- $shift := include "stowage.portShift" (dict "Values" $.Values "controller" $controller) | int -}}
{{- if gt (add $.Values.metricsPort $shift) 65535 -}}
{{- fail (printf "metricsPort is %d, and the backend %s also uses the port %d higher: choose %d at most"
      (int $.Values.metricsPort) $.Values.backend $shift (sub 65535 $shift)) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Fails where the nodes' pods of nfs would not start: the driver takes the places that its shares have, and no others. */}}
{{- define "stowage.checkPlaces" -}}
{{- if eq .Values.backend "nfs" -}}
{{- $keys := list -}}
{{- range .Values.nfs.config.shares -}}
{{- $keys = concat $keys (keys (.topology | default dict)) -}}
{{- end -}}
{{- range .Values.nfs.topologyKeys -}}
{{- if not (has . $keys) -}}
{{- fail (printf "nfs.topologyKeys has %s, and no share of nfs.config has a topology with this key: leave it out" .) -}}
{{- end -}}
{{- end -}}
{{- range $keys -}}
{{- if not (or (has . $.Values.nfs.topologyKeys) (contains "--topology" (join " " $.Values.extraArgs))) -}}
{{- fail (printf "nfs.config has a share with the topology key %s, and no node would know its value: add it to nfs.topologyKeys" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
