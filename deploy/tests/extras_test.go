package tests

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestExtras checks that labels reach all pods, and variables each driver and no other container.
func TestExtras(t *testing.T) {
	variable := corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://proxy.example:3128"}
	for _, values := range []map[string]any{
		{"backend": "ebs"}, {"backend": "nfs"}, {"backend": "local"}, {"local": map[string]any{"mode": "cluster"}},
	} {
		values["podLabels"] = map[string]any{"team": "storage"}
		values["extraEnv"] = []any{map[string]any{"name": variable.Name, "value": variable.Value}}
		for id, pod := range pods(t, charted(t, values, false)) {
			if pod.Labels["team"] != "storage" || pod.Labels["app.kubernetes.io/component"] == "" {
				t.Errorf("%v: %s has the labels %v", values, id, pod.Labels)
			}
			for _, c := range containers(pod) {
				if has := slices.Contains(c.Env, variable); has != (c.Name == "stowage") {
					t.Errorf("%v: %s of %s has the variable: %t", values, c.Name, id, has)
				}
			}
		}
	}
}

// TestExtrasReplaceNothing checks that a label or a variable of the chart cannot be replaced: without the label, the
// chart's objects would not find their pods.
func TestExtrasReplaceNothing(t *testing.T) {
	env := func(names ...string) (list []any) {
		for _, name := range names {
			list = append(list, map[string]any{"name": name, "value": "a"})
		}
		return list
	}
	region := map[string]any{"region": "eu-central-1"}
	for _, row := range []struct {
		values map[string]any
		says   string // empty if it is rendered
	}{
		{map[string]any{"podLabels": map[string]any{"app.kubernetes.io/name": "a"}}, "podLabels has app.kubernetes.io/name"},
		{map[string]any{"extraEnv": env("NODE_NAME")}, "extraEnv has NODE_NAME"},
		{map[string]any{"extraEnv": env("GOMEMLIMIT")}, "extraEnv has GOMEMLIMIT"},
		{map[string]any{"extraEnv": env("A", "A")}, "extraEnv has A"},
		{map[string]any{"extraEnv": env("AWS_REGION"), "backend": "ebs"}, ""},
		{map[string]any{"extraEnv": env("AWS_REGION"), "backend": "ebs", "ebs": region}, "extraEnv has AWS_REGION"},
		{map[string]any{"extraEnv": env("TOPOLOGY_0"), "backend": "nfs"}, "extraEnv has TOPOLOGY_0"},
		{map[string]any{"extraEnv": env("A B")}, "extraEnv"},
	} {
		if _, err := rendered(row.values, false); (err == nil) != (row.says == "") ||
			err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%v: rendered with %v, want %q in it", row.values, err, row.says)
		}
	}
}
