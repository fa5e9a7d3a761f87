package driver

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/volume"
	"github.com/stowage-csi/stowage/tests/secrets"
)

type testParameters struct {
	Pool string `param:"pool" default:"image" enum:"image|directory"`
}

type testMutable struct {
	IOPS *int `param:"iops" min:"1"`
}

func testDecoder() decoder {
	return newDecoder(backends.Definition{
		Name:          "test",
		NewParameters: func() any { return &testParameters{} },
		NewMutable:    func() any { return &testMutable{} },
	}, backends.Features{})
}

func mountCapability(mode csi.VolumeCapability_AccessMode_Mode, fsType string) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fsType}},
	}
}

func goodCreate() *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name: "pvc-1",
		VolumeCapabilities: []*csi.VolumeCapability{mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
			"ext4")},
		CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30},
		Parameters: map[string]string{
			"pool": "directory", "csi.storage.k8s.io/pvc/name": "data", "csi.storage.k8s.io/pvc/namespace": "shop",
			"csi.storage.k8s.io/pv/name": "pvc-1",
		},
		MutableParameters: map[string]string{"iops": "7"},
	}
}

// TestModeChangeIsTheClasses checks that the class decides whether a raw device's content may become a filesystem.
func TestModeChangeIsTheClasses(t *testing.T) {
	for value, want := range map[string]bool{"": false, "false": false, "true": true} {
		r := goodCreate()
		if value != "" {
			r.Parameters["allowVolumeModeChange"] = value
		}
		got, err := testDecoder().createVolume(r)
		if err != nil || got.spec.AllowModeChange != want {
			t.Errorf("allowVolumeModeChange %q: %t, %v; want %t", value, got.spec.AllowModeChange, err, want)
		}
	}
}

func TestCreateVolumeIsDecoded(t *testing.T) {
	got, err := testDecoder().createVolume(goodCreate())
	if err != nil {
		t.Fatal(err)
	}
	if p := got.spec.Parameters.(*testParameters); p.Pool != "directory" {
		t.Errorf("pool is %q", p.Pool)
	}
	if m := got.spec.Mutable.(*testMutable); *m.IOPS != 7 {
		t.Errorf("iops is %d", *m.IOPS)
	}
	if want := (backends.Claim{Namespace: "shop", Name: "data", Volume: "pvc-1"}); got.spec.Claim != want {
		t.Errorf("claim is %+v", got.spec.Claim)
	}
	if got.spec.Name != "pvc-1" || got.spec.Capacity.RequiredBytes != 1<<30 || got.spec.Access.Types[0] != backends.Mount {
		t.Errorf("spec is %+v", got.spec)
	}
}

// A claim that is too small for its filesystem would be bound, and its pod would wait forever.
func TestLeastDevice(t *testing.T) {
	const writer, mib = csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, 1 << 20
	block := &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: writer},
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
	}
	for what, test := range map[string]struct {
		class        string
		capabilities []*csi.VolumeCapability
		want         int64
	}{
		"named by the capability": {"", []*csi.VolumeCapability{mountCapability(writer, "xfs")}, 300 * mib},
		"named by the class":      {"xfs", []*csi.VolumeCapability{mountCapability(writer, "")}, 300 * mib},
		"the default": {"",
			[]*csi.VolumeCapability{mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, "")}, 2 * mib},
		"never made":                 {"", []*csi.VolumeCapability{mountCapability(writer, "ext3")}, 0},
		"raw block":                  {"", []*csi.VolumeCapability{block}, 0},
		"raw block and a filesystem": {"", []*csi.VolumeCapability{mountCapability(writer, "btrfs"), block}, 109 * mib},
	} {
		request := goodCreate()
		request.VolumeCapabilities = test.capabilities
		if test.class != "" {
			request.Parameters["csi.storage.k8s.io/fstype"] = test.class
		}
		got, err := testDecoder().createVolume(request)
		if err != nil || got.spec.LeastDeviceBytes != test.want {
			t.Errorf("%s: %d bytes, %v; want %d", what, got.spec.LeastDeviceBytes, err, test.want)
		}
	}
}

// The fingerprint depends on the class and the access type, and not on the claim's identity.
func TestFingerprint(t *testing.T) {
	fingerprint := func(change func(*csi.CreateVolumeRequest)) string {
		request := goodCreate()
		change(request)
		got, err := testDecoder().createVolume(request)
		if err != nil {
			t.Fatal(err)
		}
		return got.spec.Fingerprint
	}
	base := fingerprint(func(*csi.CreateVolumeRequest) {})
	same := fingerprint(func(r *csi.CreateVolumeRequest) { r.Parameters["csi.storage.k8s.io/pvc/name"] = "other" })
	if same != base {
		t.Error("the claim's name changes the fingerprint")
	}
	for what, change := range map[string]func(*csi.CreateVolumeRequest){
		"the pool":       func(r *csi.CreateVolumeRequest) { r.Parameters["pool"] = "image" },
		"the filesystem": func(r *csi.CreateVolumeRequest) { r.Parameters["csi.storage.k8s.io/fstype"] = "ext4" },
		"the access type": func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities[0].AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		},
	} {
		if fingerprint(change) == base {
			t.Errorf("%s does not change the fingerprint", what)
		}
	}
}

// TestFingerprintOfAGroup: a group of the same name with another class's parameters is another group.
func TestFingerprintOfAGroup(t *testing.T) {
	definition := testDecoder().definition
	definition.NewSnapshotParameters = func() any { return &testParameters{} }
	d := newDecoder(definition, backends.Features{})
	fingerprint := func(parameters map[string]string) string {
		spec, err := d.createGroup(&csi.CreateVolumeGroupSnapshotRequest{Name: "group", SourceVolumeIds: []string{"a", "b"},
			Parameters: parameters})
		if err != nil {
			t.Fatal(err)
		}
		return spec.Fingerprint
	}
	base := fingerprint(map[string]string{"pool": "directory"})
	if fingerprint(map[string]string{"pool": "image"}) == base {
		t.Error("the pool does not change the fingerprint")
	}
	named := map[string]string{"pool": "directory", "csi.storage.k8s.io/volumegroupsnapshot/name": "other"}
	if fingerprint(named) != base {
		t.Error("the name of the VolumeGroupSnapshot changes the fingerprint")
	}
}

func TestCreateVolumeIsRefused(t *testing.T) {
	for what, test := range map[string]struct {
		change func(*csi.CreateVolumeRequest)
		want   []string
	}{
		"no name":           {func(r *csi.CreateVolumeRequest) { r.Name = "" }, []string{"name", "missing"}},
		"long name":         {func(r *csi.CreateVolumeRequest) { r.Name = strings.Repeat("x", 129) }, []string{"129", "128"}},
		"control character": {func(r *csi.CreateVolumeRequest) { r.Name = "a\x00b" }, []string{"control", `\x00`}},
		"not UTF-8":         {func(r *csi.CreateVolumeRequest) { r.Name = "a\xff" }, []string{"UTF-8"}},
		"no capability": {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities = nil },
			[]string{"capabilities", "missing"}},
		"no access type": {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0].AccessType = nil },
			[]string{"mount or block"}},
		"no access mode": {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0].AccessMode = nil },
			[]string{"UNKNOWN"}},
		"unknown mode": {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0].AccessMode.Mode = 99 },
			[]string{"99"}},
		"negative size": {func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = -1 },
			[]string{"-1", "negative"}},
		"empty range":       {func(r *csi.CreateVolumeRequest) { r.CapacityRange.LimitBytes = 5 }, []string{"limit_bytes 5"}},
		"unknown parameter": {func(r *csi.CreateVolumeRequest) { r.Parameters["pol"] = "x" }, []string{"pol", "pool"}},
		"wrong value": {func(r *csi.CreateVolumeRequest) { r.Parameters["pool"] = "tape" },
			[]string{"pool", "tape", "image"}},
		"unknown mutable": {func(r *csi.CreateVolumeRequest) { r.MutableParameters["iop"] = "1" }, []string{"iop", "iops"}},
		"two filesystems": {func(r *csi.CreateVolumeRequest) { r.Parameters["csi.storage.k8s.io/fstype"] = "xfs" },
			[]string{"ext4", "xfs"}},
		"no such layout": {func(r *csi.CreateVolumeRequest) { r.Parameters["blockSize"] = "3000" },
			[]string{"blockSize", "3000", "power of two"}},
		"layout too far": {func(r *csi.CreateVolumeRequest) { r.Parameters["blocksize"] = "65536" },
			[]string{"blocksize", "65536", "4096"}},
		"empty source": {func(r *csi.CreateVolumeRequest) { r.VolumeContentSource = &csi.VolumeContentSource{} },
			[]string{"neither"}},
		"source without ID": {func(r *csi.CreateVolumeRequest) {
			r.VolumeContentSource = &csi.VolumeContentSource{
				Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{}},
			}
		}, []string{"volume_id", "missing"}},
	} {
		request := goodCreate()
		test.change(request)
		_, err := testDecoder().createVolume(request)
		if !backends.Is(err, backends.Invalid) {
			t.Errorf("%s: got %v, want Invalid", what, err)
			continue
		}
		for _, part := range test.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not mention %q", what, err, part)
			}
		}
	}
}

func TestMutableParametersNeedABackendThatHasThem(t *testing.T) {
	d := testDecoder()
	d.definition.NewMutable = nil
	if _, err := d.createVolume(goodCreate()); !backends.Is(err, backends.Invalid) {
		t.Errorf("got %v", err)
	}
}

func TestStageVolumeIsDecoded(t *testing.T) {
	capability := mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "xfs")
	capability.GetMount().VolumeMountGroup = "4321"
	request := &csi.NodeStageVolumeRequest{
		VolumeId: "v", StagingTargetPath: "/staging/", VolumeCapability: capability,
		VolumeContext: volume.EncodeContext(map[string]string{"fsGroupChangePolicy": "OnRootMismatch"},
			map[string]string{"bus": "nvme", "serial": "1"}),
		PublishContext: volume.EncodeContext(nil, map[string]string{"serial": "2"}),
	}
	request.VolumeContext["csi.storage.k8s.io/serviceAccount.tokens"] = secrets.Canary
	got, err := testDecoder().stageVolume(request)
	if err != nil {
		t.Fatal(err)
	}
	if got.StagingPath != "/staging" || got.MountGroup != "4321" || got.Use.FSType != "xfs" ||
		got.Settings.FSGroupChangePolicy != "OnRootMismatch" {
		t.Errorf("got %+v", got)
	}
	if len(got.Attributes) != 2 || got.Attributes["bus"] != "nvme" || got.Attributes["serial"] != "2" {
		t.Errorf("attributes are %v", got.Attributes)
	}
}

// Samples are sufficient for volumes that this driver created. For another volume they are if its PersistentVolume says
// so. Backends do not get that attribute.
func TestTrustSamplesIsDecoded(t *testing.T) {
	for name, test := range map[string]struct {
		context map[string]string
		want    bool
		kind    backends.Kind
	}{
		"made by this driver":    {context: volume.EncodeContext(nil, nil), want: true},
		"made by hand":           {context: map[string]string{"serial": "1"}},
		"by hand, allowed":       {context: map[string]string{"stowage.dev/allowFormat": "true"}, want: true},
		"by hand, not allowed":   {context: map[string]string{"stowage.dev/allowFormat": "false"}},
		"by hand, who knows how": {context: map[string]string{"stowage.dev/allowFormat": "yes"}, kind: backends.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := testDecoder().stageVolume(&csi.NodeStageVolumeRequest{
				VolumeId: "v", StagingTargetPath: "/staging", VolumeContext: test.context,
				VolumeCapability: mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, ""),
				PublishContext:   volume.EncodeContext(nil, nil), // of each attached volume
			})
			if (err != nil) != (test.kind != backends.Unknown) || err != nil && !backends.Is(err, test.kind) {
				t.Fatalf("got %v, want Kind %s", err, test.kind)
			}
			if got.TrustSamples != test.want {
				t.Errorf("TrustSamples is %t, want %t", got.TrustSamples, test.want)
			}
			if _, reaches := got.Attributes["stowage.dev/allowFormat"]; reaches {
				t.Error("the attribute reaches the backend")
			}
		})
	}
}

// A publication may have another group than the staging before it.
func TestGroupOfPublishIsDecoded(t *testing.T) {
	request := &csi.NodePublishVolumeRequest{VolumeId: "v", StagingTargetPath: "/staging", TargetPath: "/target"}
	for group, ok := range map[string]bool{"": true, "4321": true, "staff": false} {
		request.VolumeCapability = mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "")
		request.VolumeCapability.GetMount().VolumeMountGroup = group
		got, err := testDecoder().publishToTarget(request)
		if (err == nil) != ok || ok && got.MountGroup != group {
			t.Errorf("%q: got %+v, %v", group, got, err)
		}
	}
}

func TestMountGroup(t *testing.T) {
	for group, ok := range map[string]bool{
		"": true, "0": true, "65534": true, "2147483647": true,
		"-1": false, "01": false, "+1": false, "staff": false, "4294967296": false, " 1": false,
	} {
		capability := mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "")
		capability.GetMount().VolumeMountGroup = group
		if _, err := mountGroup(capability); (err == nil) != ok {
			t.Errorf("%q: %v", group, err)
		}
	}
}

func TestPathsAreChecked(t *testing.T) {
	for _, bad := range []string{"", "relative", "/a/../b", "/a/./b", "/a\x00b", "/" + strings.Repeat("x", 5000)} {
		if _, err := volumeAt("v", "target_path", bad); !backends.Is(err, backends.Invalid) {
			t.Errorf("%.20q: got %v", bad, err)
		}
	}
	if _, err := volumeAt("", "target_path", "/a"); !backends.Is(err, backends.Invalid) {
		t.Errorf("an empty ID: got %v", err)
	}
}
