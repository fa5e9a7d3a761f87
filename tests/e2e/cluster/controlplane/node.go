package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/leftovers"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/machine"
)

// node is process 1 of a node. The node ends with it. As after a power loss, the node then starts again from its disk,
// unless it is off.
func node(m *machine.Machine, l layout.Layout, number int) machine.Component {
	name := layout.NodeName(number)
	return machine.Component{
		Name:       name,
		Argv:       []string{l.Self(), "node", "-data", l.Data(), "-number", strconv.Itoa(number)},
		Log:        l.Log(name),
		Namespaces: Namespaces,
		Prepare:    func(ctx context.Context) error { return prepareNode(ctx, l, name) },
		Started: func(ctx context.Context, process *os.Process) error {
			pid := strconv.Itoa(process.Pid)
			if err := layout.WriteFile(l.NodeProcess(name), []byte(pid), 0o644); err != nil {
				return err
			}
			return plug(ctx, m, layout.Cable(name), pid)
		},
	}
}

// prepareNode waits until the node is no longer off. It removes the control groups of the pods of the node's previous
// run, which a real machine would have lost.
func prepareNode(ctx context.Context, l layout.Layout, name string) error {
	err := machine.Until(ctx, name, func(context.Context) error {
		_, err := os.Stat(l.NodeOff(name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return errors.Join(fmt.Errorf("%s is off", name), err)
	})
	if err != nil {
		return err
	}
	if err := leftovers.RemoveCgroups(ctx, l.Cgroup()+"/"+name); err != nil {
		return err
	}
	return leftovers.MakeCgroups(l.Cgroup(), []string{name})
}
