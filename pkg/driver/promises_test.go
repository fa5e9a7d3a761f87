package driver

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/keylock"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
)

func capabilityOf(c *csi.VolumeCapability) []*csi.VolumeCapability { return []*csi.VolumeCapability{c} }

// directories is a backend whose volumes cannot be raw devices.
type directories struct{ backends.Backend }

func (directories) Get(_ context.Context, handle string) (*backends.Volume, error) {
	return &backends.Volume{Handle: handle, Access: backends.Access{Types: []backends.AccessType{backends.Mount},
		Modes: backends.SingleNodeModes()}}, nil
}

func (directories) Expand(context.Context, string, backends.CapacityRange) (backends.Expansion, error) {
	return backends.Expansion{CapacityBytes: 2}, nil
}

// TestExpansionChecksTheCapability: a volume is not grown for a use that it does not support.
func TestExpansionChecksTheCapability(t *testing.T) {
	s := serve(t, directories{}, time.Second)
	mode := &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}
	for what, test := range map[string]struct {
		capability *csi.VolumeCapability
		want       codes.Code
	}{
		"none":    {nil, codes.OK},
		"mounted": {mountCapability(mode.GetMode(), ""), codes.OK},
		"raw": {&csi.VolumeCapability{AccessMode: mode,
			AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}}, codes.InvalidArgument},
		"no types": {&csi.VolumeCapability{AccessMode: mode}, codes.InvalidArgument},
	} {
		_, err := s.client.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{
			VolumeId: "v", CapacityRange: &csi.CapacityRange{RequiredBytes: 2}, VolumeCapability: test.capability,
		})
		if status.Code(err) != test.want {
			t.Errorf("%s: %v, want %s", what, err, test.want)
		}
	}
}

// ofXFS is a backend whose volumes are devices of a class that names xfs.
type ofXFS struct{ directories }

func (ofXFS) Get(_ context.Context, handle string) (*backends.Volume, error) {
	return &backends.Volume{Handle: handle, Settings: map[string]string{"csi.storage.k8s.io/fstype": "xfs"},
		Access: backends.Access{Types: []backends.AccessType{backends.Mount}, Modes: backends.SingleNodeModes(),
			Mountable: mountoptions.Device{}}}, nil
}

// TestTheFilesystemOfTheClassCounts: a capability that names no filesystem means that of the class in each call, as in
// CreateVolume and NodeStageVolume, and one that names another is refused.
func TestTheFilesystemOfTheClassCounts(t *testing.T) {
	s := serve(t, ofXFS{}, time.Second)
	class := map[string]string{"csi.storage.k8s.io/fstype": "xfs"}
	for what, test := range map[string]struct {
		fsType, flag string
		isPossible   bool
	}{
		"an option of xfs": {"", "inode64", true}, "xfs by name": {"xfs", "inode64", true},
		"an option of ext4": {"", "noload", false}, "ext4 by name": {"ext4", "noatime", false},
	} {
		capability := mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, test.fsType)
		capability.GetMount().MountFlags = []string{test.flag}
		answer, err := s.client.ValidateVolumeCapabilities(t.Context(),
			&csi.ValidateVolumeCapabilitiesRequest{VolumeId: "v", VolumeCapabilities: capabilityOf(capability)})
		if err != nil || (answer.GetConfirmed() != nil) != test.isPossible {
			t.Errorf("%s: ValidateVolumeCapabilities answers %v, %v", what, answer, err)
		}
		_, err = s.client.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: "v",
			CapacityRange: &csi.CapacityRange{RequiredBytes: 2}, VolumeCapability: capability})
		if want := codes.InvalidArgument; test.isPossible && err != nil || !test.isPossible && status.Code(err) != want {
			t.Errorf("%s: ControllerExpandVolume answers %v", what, err)
		}
		attach, err := decoder{}.publishVolume(&csi.ControllerPublishVolumeRequest{VolumeId: "v", NodeId: "n",
			VolumeCapability: capability, VolumeContext: class})
		if err == nil {
			err = mountoptions.Device{}.Check(attach.Access.Mountings[0].Filesystem, attach.Access.Mountings[0].Options)
		}
		if (err == nil) != test.isPossible {
			t.Errorf("%s: ControllerPublishVolume is decoded as %+v, %v", what, attach, err)
		}
		query, err := testDecoder().capacityQuery(&csi.GetCapacityRequest{Parameters: class,
			VolumeCapabilities: capabilityOf(capability)})
		if err == nil {
			err = mountoptions.Device{}.Check(query.Access.Mountings[0].Filesystem, query.Access.Mountings[0].Options)
		}
		if (err == nil) != test.isPossible {
			t.Errorf("%s: GetCapacity is decoded as %+v, %v", what, query, err)
		}
	}
}

// TestValidateEchoesWhatItChecked: a volume context and parameters that were not compared are not confirmed.
func TestValidateEchoesWhatItChecked(t *testing.T) {
	s := serve(t, directories{}, time.Second)
	response, err := s.client.ValidateVolumeCapabilities(t.Context(), &csi.ValidateVolumeCapabilitiesRequest{
		VolumeId: "v", VolumeCapabilities: capabilityOf(mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
			"")),
		VolumeContext: map[string]string{"any": "thing"}, Parameters: map[string]string{"no": "sense"},
		MutableParameters: map[string]string{"nor": "this"},
	})
	if err != nil {
		t.Fatal(err)
	}
	confirmed := response.GetConfirmed()
	if len(confirmed.GetVolumeCapabilities()) != 1 ||
		len(confirmed.GetVolumeContext())+len(confirmed.GetParameters())+len(confirmed.GetMutableParameters()) > 0 {
		t.Errorf("confirmed: %v", confirmed)
	}
}

// TestLongNamesLockNothing: the keys of locks are no longer than CSI allows names and IDs to be.
func TestLongNamesLockNothing(t *testing.T) {
	long := strings.Repeat("n", maxField+1)
	for _, request := range []any{
		&csi.CreateVolumeRequest{Name: long}, &csi.CreateSnapshotRequest{Name: long},
		&csi.CreateVolumeGroupSnapshotRequest{Name: long},
		&csi.DeleteVolumeRequest{VolumeId: long}, &csi.DeleteSnapshotRequest{SnapshotId: long},
		&csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: long}, &csi.NodeStageVolumeRequest{VolumeId: long},
		&csi.ControllerExpandVolumeRequest{},
	} {
		_, err := lock(keylock.New())(t.Context(), request, nil, func(context.Context, any) (any, error) {
			t.Errorf("%T: it was locked and called", request)
			return nil, nil
		})
		if !backends.Is(err, backends.Invalid) {
			t.Errorf("%T: %v, want Invalid", request, err)
		}
	}
}

// TestPublishNeedsAStagingPath: the specification has a code of its own for a volume that is not staged.
func TestPublishNeedsAStagingPath(t *testing.T) {
	_, err := decoder{}.publishToTarget(&csi.NodePublishVolumeRequest{
		VolumeId: "v", TargetPath: "/t", VolumeCapability: mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
			""),
	})
	if code := newAnswers().codeOf("NodePublishVolume", err); code != codes.FailedPrecondition {
		t.Errorf("%v is answered %s, want FailedPrecondition", err, code)
	}
}

// TestNothingIsAttachedReadOnly: the driver does not accept a flag that no backend enforces.
func TestNothingIsAttachedReadOnly(t *testing.T) {
	_, err := decoder{}.publishVolume(&csi.ControllerPublishVolumeRequest{
		VolumeId: "v", NodeId: "n", Readonly: true,
		VolumeCapability: mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, ""),
	})
	if !backends.Is(err, backends.Invalid) || !strings.Contains(err.Error(), "PUBLISH_READONLY") {
		t.Errorf("readonly: %v, want Invalid that names the capability", err)
	}
}

// TestImpossibleMountsAreRefused: the driver refuses a filesystem or an option with which no pod could start, already
// when the volume is created or validated.
func TestImpossibleMountsAreRefused(t *testing.T) {
	definition, instance := memoryBackend(t)
	s := serveConfig(t, Config{Definition: definition, Instance: &backends.Instance{Controller: instance.Controller},
		Log: slog.New(slog.DiscardHandler)}, time.Second)
	plain := mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "")
	made, err := s.client.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "good",
		VolumeCapabilities: capabilityOf(plain)})
	if err != nil {
		t.Fatal(err)
	}
	handle := made.GetVolume().GetVolumeId()
	for what, test := range map[string]struct{ fsType, class, flag string }{
		"filesystem": {fsType: "ntfs"}, "path": {fsType: "../x"}, "class": {class: "ntfs"},
		"option": {flag: "logdev=/dev/sda"},
	} {
		capability := mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, test.fsType)
		if test.flag != "" {
			capability.GetMount().MountFlags = []string{test.flag}
		}
		request := &csi.CreateVolumeRequest{Name: "bad", VolumeCapabilities: capabilityOf(capability)}
		if test.class != "" {
			request.Parameters = map[string]string{"csi.storage.k8s.io/fstype": test.class}
		}
		_, err := s.client.CreateVolume(t.Context(), request)
		if said := test.fsType + test.class + test.flag; status.Code(err) != codes.InvalidArgument ||
			!strings.Contains(err.Error(), said) {
			t.Errorf("%s: CreateVolume answers %v, want InvalidArgument that says %q", what, err, said)
		}
		answer, err := s.client.ValidateVolumeCapabilities(t.Context(),
			&csi.ValidateVolumeCapabilitiesRequest{VolumeId: handle, VolumeCapabilities: capabilityOf(capability)})
		if test.class == "" && (err != nil || answer.GetConfirmed() != nil || answer.GetMessage() == "") {
			t.Errorf("%s: ValidateVolumeCapabilities answers %v, %v", what, answer, err)
		}
	}
}

// TestNoCapacityForAnImpossibleFilesystem: GetCapacity refuses the class with which CreateVolume refuses a filesystem.
func TestNoCapacityForAnImpossibleFilesystem(t *testing.T) {
	mounted := capabilityOf(mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "xfs"))
	for key, value := range map[string]string{"blockSize": "3000", "csi.storage.k8s.io/fstype": "ext4"} {
		r := &csi.GetCapacityRequest{Parameters: map[string]string{key: value}, VolumeCapabilities: mounted}
		if query, err := testDecoder().capacityQuery(r); !backends.Is(err, backends.Invalid) {
			t.Errorf("%s %s: %+v, %v; want Invalid", key, value, query, err)
		}
	}
}

// TestCapacityOfAClassAsItStands: csi-provisioner removes the filesystem from the parameters of CreateVolume, but not
// from those of GetCapacity.
func TestCapacityOfAClassAsItStands(t *testing.T) {
	for _, fsType := range []string{"ext4", "nfs", "nfs4"} {
		r := &csi.GetCapacityRequest{Parameters: map[string]string{"pool": "image", "csi.storage.k8s.io/fstype": fsType}}
		if query, err := testDecoder().capacityQuery(r); err != nil || query.Parameters.(*testParameters).Pool != "image" {
			t.Errorf("%s: %+v, %v", fsType, query, err)
		}
	}
}
