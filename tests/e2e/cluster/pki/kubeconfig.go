package pki

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
)

// writeKubeconfigs writes a kubeconfig for each user: the administrator's for the host, the others for the cluster's
// own network.
func writeKubeconfigs(l layout.Layout, nodes, port int) error {
	inside := fmt.Sprintf("https://%s:%d", layout.ControlPlane, layout.APIPort)
	for _, user := range users(nodes) {
		path, server := l.Config(user.file+".kubeconfig"), inside
		if user.file == "admin" {
			path, server = l.Kubeconfig(), fmt.Sprintf("https://127.0.0.1:%d", port)
		}
		if err := writeKubeconfig(l.Certificate(""), user.file, server, path); err != nil {
			return fmt.Errorf("kubeconfig of %s: %w", user.name, err)
		}
	}
	return nil
}

// writeKubeconfig writes a self-contained kubeconfig, which can be copied. JSON is YAML.
func writeKubeconfig(dir, user, server, path string) error {
	var parts [3][]byte
	for i, file := range []string{"ca.crt", user + ".crt", user + ".key"} {
		var err error
		if parts[i], err = os.ReadFile(filepath.Join(dir, file)); err != nil {
			return err
		}
	}
	named := func(kind string, value any) []map[string]any {
		return []map[string]any{{"name": "stowage", kind: value}}
	}
	text, err := json.MarshalIndent(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "stowage",
		"clusters": named("cluster", map[string]any{"server": server, "certificate-authority-data": parts[0]}),
		"users":    named("user", map[string]any{"client-certificate-data": parts[1], "client-key-data": parts[2]}),
		"contexts": named("context", map[string]any{"cluster": "stowage", "user": "stowage"}),
	}, "", "  ")
	if err != nil {
		return err
	}
	return layout.WriteFile(path, append(text, '\n'), 0o600)
}
