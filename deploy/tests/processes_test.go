package tests

import (
	"maps"
	"strings"
	"testing"
)

// TestOwnProcesses checks that no pod sees the host's processes. They would only provide a name in an error, and every
// container of the pod would see the arguments of all processes of the node. The exception is the process that opens
// disks, alone in its pod: no other interface shows that a process has a disk open.
func TestOwnProcesses(t *testing.T) {
	each(t, func(t *testing.T, objects []object) {
		for id, pod := range pods(t, objects) {
			opens := id == disksOpener && len(pod.Spec.Containers) == 1
			if pod.Spec.HostPID != opens || pod.Spec.HostIPC ||
				pod.Spec.ShareProcessNamespace != nil && *pod.Spec.ShareProcessNamespace {
				t.Errorf("%s sees processes that are not its own (host's: %t)", id, pod.Spec.HostPID)
			}
		}
	})
}

// TestHostProcesses checks that hostPID can be enabled, to get the names of processes, for exactly the pods that mount
// volumes. The process that opens disks always has it.
func TestHostProcesses(t *testing.T) {
	for _, in := range installs() {
		values := maps.Clone(in.values)
		values["hostPID"] = true
		for id, pod := range pods(t, charted(t, values, in.schemaless)) {
			_, mounts := driverOf(t, id, pod)
			if want := mounts && !strings.HasPrefix(id, "Deployment/") || id == disksOpener; pod.Spec.HostPID != want {
				t.Errorf("%s: %s sees the host's processes: %t, want %t", in.name, id, pod.Spec.HostPID, want)
			}
		}
	}
}
