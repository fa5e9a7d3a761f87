package up

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/programs"
)

// write writes the files of the data folder that do not change while the cluster runs. It writes the marker first, so
// that an incomplete folder is removed next time.
func (o Options) write(m *made) error {
	l := o.Layout
	if err := os.MkdirAll(l.Data(), 0o755); err != nil {
		return err
	}
	if err := l.Describe(layout.Description{Nodes: o.Nodes, Store: o.Store, Version: m.version,
		Images: m.images}); err != nil {
		return err
	}
	folders := []string{"bin", "programs", "logs", "nodes"}
	for number := 1; number <= o.Nodes; number++ {
		folders = append(folders, filepath.Join("nodes", layout.NodeName(number)))
	}
	for _, folder := range folders {
		if err := os.MkdirAll(l.Path(folder), 0o755); err != nil {
			return err
		}
	}
	if err := o.programs(m.binaries); err != nil {
		return err
	}
	return os.CopyFS(l.Path("addons"), os.DirFS(m.addons))
}

// programs links the programs, and copies this one.
func (o Options) programs(binaries map[string]string) error {
	l := o.Layout
	for name, path := range binaries {
		if err := os.Symlink(path, l.Program(name)); err != nil {
			return err
		}
	}
	for _, name := range programs.Links() {
		if err := os.Symlink(binaries["kube"], l.Program(name)); err != nil {
			return err
		}
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	if err := os.WriteFile(l.Self(), self, 0o755); err != nil {
		return err
	}
	kubectl := fmt.Sprintf("#!/bin/sh\nexec '%s' --kubeconfig='%s' \"$@\"\n", l.Program("kubectl"), l.Kubeconfig())
	if err := os.WriteFile(l.Kubectl(), []byte(kubectl), 0o755); err != nil {
		return err
	}
	enter := fmt.Sprintf("#!/bin/sh\nexec '%s' enter -data '%s' \"$@\"\n", l.Self(), l.Data())
	return os.WriteFile(l.Path("bin", "enter"), []byte(enter), 0o755)
}
