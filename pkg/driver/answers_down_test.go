package driver

import (
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// takingDown returns the sidecars for the calls that take something down. None of them looks at the code: until a call
// succeeds, each keeps its object, with the handle and a finalizer, and the kubelet keeps its record of the mount.
func takingDown() []caller {
	const again = "retry"
	return []caller{
		// The library is told to retry without end: FailedDeleteThreshold(0) in cmd/csi-provisioner.
		{name: "csi-provisioner 6.3.0", function: "sig-storage-lib-external-provisioner controller/controller.go " +
			"deleteVolumeOperation", open: allCodes(), final: again, calls: []string{"DeleteVolume"}},
		{name: "csi-attacher 4.12.0", function: "pkg/controller/csi_handler.go csiDetach", open: allCodes(), final: again,
			calls: []string{"ControllerUnpublishVolume"}},
		{name: "csi-snapshotter 8.6.0", function: "pkg/sidecar-controller/snapshot_controller.go " +
			"deleteCSISnapshotOperation, groupsnapshot_helper.go deleteCSIGroupSnapshotOperation", open: allCodes(),
			final: again, calls: []string{"DeleteSnapshot", "DeleteVolumeGroupSnapshot"}},
		{name: "kubelet 1.36.3", function: "pkg/volume/util/operationexecutor/operation_generator.go " +
			"GenerateUnmountDeviceFunc, GenerateUnmountVolumeFunc, GenerateUnmapDeviceFunc, GenerateUnmapVolumeFunc",
			open: allCodes(), final: again, calls: []string{"NodeUnstageVolume", "NodeUnpublishVolume"}},
	}
}

// allCodes returns the codes of failures.
func allCodes() (all []codes.Code) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		all = append(all, code)
	}
	return all
}

// TestEveryChangeHasACaller: the table of callers has each call that changes something.
func TestEveryChangeHasACaller(t *testing.T) {
	called := map[string]int{}
	for _, c := range callers() {
		for _, rpc := range c.calls {
			called[rpc]++
		}
	}
	services := csi.File_csi_proto.Services()
	for _, service := range []protoreflect.Name{"Controller", "GroupController", "Node"} {
		methods := services.ByName(service).Methods()
		for i := range methods.Len() {
			rpc := string(methods.Get(i).Name())
			want := 1
			if looksOnly(rpc) {
				want = 0
			}
			if called[rpc] != want {
				t.Errorf("%s has %d callers in the table, want %d", rpc, called[rpc], want)
			}
			delete(called, rpc)
		}
	}
	if len(called) > 0 {
		t.Errorf("no service has %v", called)
	}
}

// looksOnly reports whether a call changes nothing.
func looksOnly(rpc string) bool {
	of := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(rpc, "Group"), "Controller"), "Node")
	return slices.ContainsFunc([]string{"Get", "List", "Validate"}, func(verb string) bool {
		return strings.HasPrefix(of, verb)
	})
}
