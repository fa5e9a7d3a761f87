package ebs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/params"
)

func ptr[T any](v T) *T { return &v }

func TestShapes(t *testing.T) {
	gibs := func(n int64) backends.CapacityRange { return backends.CapacityRange{RequiredBytes: n * gib} }
	for _, row := range []struct {
		name   string
		class  string // parameters as key=value
		m      Mutable
		size   backends.CapacityRange
		source int64
		want   shape
		fails  backends.Kind
	}{
		{name: "nothing is asked", size: backends.CapacityRange{}, want: shape{kind: "gp3", gib: 100}},
		{name: "a size is rounded up", size: backends.CapacityRange{RequiredBytes: gib + 1},
			want: shape{kind: "gp3", gib: 2}},
		{name: "a limit below a GiB more", size: backends.CapacityRange{RequiredBytes: gib + 1, LimitBytes: 2*gib - 1},
			fails: backends.OutOfRange},
		{name: "a source that is larger", size: gibs(1), source: 7 * gib, want: shape{kind: "gp3", gib: 7}},
		{name: "st1 is at least 125 GiB", class: "type=st1", size: gibs(1), want: shape{kind: "st1", gib: 125}},
		{name: "gp2 has no iops", class: "type=gp2 iops=3000", size: gibs(1), fails: backends.Invalid},
		{name: "io2 needs iops", class: "type=io2", size: gibs(10), fails: backends.Invalid},
		{name: "io2", class: "type=io2 iops=10000", size: gibs(10), want: shape{kind: "io2", gib: 10, iops: 10000}},
		{name: "io2, more than its size allows", class: "type=io2 iops=10001", size: gibs(10),
			want: shape{kind: "io2", gib: 10, iops: 10000}},
		{name: "io2, more than the type has", class: "type=io2 iops=300000", size: gibs(1000),
			want: shape{kind: "io2", gib: 1000, iops: 256000}},
		{name: "gp3, more than the type has", class: "iops=90000", size: gibs(200),
			want: shape{kind: "gp3", gib: 200, iops: 80000}},
		{name: "gp3, too small for the type's least", class: "iops=4000", size: gibs(4), fails: backends.Invalid},
		{name: "mutable iops, more than the size allows", class: "type=io2 iops=100", m: Mutable{IOPS: ptr(int64(10001))},
			size: gibs(10), fails: backends.Invalid},
		{name: "io1, iops per GiB", class: "type=io1 iopsPerGB=50", size: gibs(10),
			want: shape{kind: "io1", gib: 10, iops: 500}},
		{name: "io1, more per GiB than there are", class: "type=io1 iopsPerGB=51", size: gibs(10),
			want: shape{kind: "io1", gib: 10, iops: 500}},
		{name: "io2, more per GiB than any type has", class: "type=io2 iopsPerGB=9223372036854775807", size: gibs(10),
			want: shape{kind: "io2", gib: 10, iops: 10000}},
		{name: "io1, too few", class: "type=io1 iopsPerGB=10", size: gibs(4), fails: backends.Invalid},
		{name: "io1, too few made enough", class: "type=io1 iopsPerGB=10 allowAutoIOPSPerGBIncrease=true", size: gibs(4),
			want: shape{kind: "io1", gib: 4, iops: 100}},
		{name: "io1, no more than there are", class: "type=io1 iopsPerGB=50", size: gibs(16000),
			want: shape{kind: "io1", gib: 16000, iops: 64000}},
		{name: "gp3 with throughput", class: "type=gp3 throughput=750", size: gibs(1),
			want: shape{kind: "gp3", gib: 1, throughput: 750}},
		{name: "gp3 with more than its iops bear", class: "type=gp3 throughput=751", size: gibs(1), fails: backends.Invalid},
		{name: "gp3 with enough iops for it", class: "throughput=1000 iops=4000", size: gibs(8),
			want: shape{kind: "gp3", gib: 8, iops: 4000, throughput: 1000}},
		{name: "throughput for io2", class: "type=io2 iops=100 throughput=125", size: gibs(8), fails: backends.Invalid},
		{name: "too large", class: "type=gp2", size: gibs(16385), fails: backends.OutOfRange},
		{name: "mutable iops per GiB", class: "type=io2 iops=100", m: Mutable{IOPSPerGB: ptr(int64(30))}, size: gibs(10),
			want: shape{kind: "io2", gib: 10, iops: 300}},
		{name: "mutable iops per GiB, more than there are", class: "type=io2 iops=100",
			m: Mutable{IOPSPerGB: ptr(int64(1001))}, size: gibs(10), want: shape{kind: "io2", gib: 10, iops: 10000}},
		{name: "mutable iops per GiB, too few", class: "type=io2 iops=100", m: Mutable{IOPSPerGB: ptr(int64(1))},
			size: gibs(10), fails: backends.Invalid},
		{name: "mutable iops per GiB for gp2", class: "type=gp2", m: Mutable{IOPSPerGB: ptr(int64(10))}, size: gibs(8),
			fails: backends.Invalid},
		{name: "a mutable type", class: "type=gp2", m: Mutable{Type: ptr("gp3"), IOPS: ptr(int64(4000))}, size: gibs(8),
			want: shape{kind: "gp3", gib: 8, iops: 4000}},
		{name: "a mutable type that bears fewer iops", class: "type=io2 iops=10000", m: Mutable{Type: ptr("gp3")},
			size: gibs(10), want: shape{kind: "gp3", gib: 10}},
		{name: "a mutable type that bears no iops", class: "type=gp3 iops=4000", m: Mutable{Type: ptr("gp2")}, size: gibs(8),
			want: shape{kind: "gp2", gib: 8}},
	} {
		values := map[string]string{}
		for _, pair := range strings.Fields(row.class) {
			key, value, _ := strings.Cut(pair, "=")
			values[key] = value
		}
		var p Parameters
		err := params.Decode(values, &p)
		var have shape
		if err == nil {
			have, err = shapeFor(p, row.m, row.size, max(row.source, defaultSizeWithout(row.source)), row.source)
		}
		if row.fails != backends.Unknown {
			if !backends.Is(err, row.fails) {
				t.Errorf("%s: got %+v, %v; want a failure that is %s", row.name, have, err, row.fails)
			}
			continue
		}
		if err != nil || have != row.want {
			t.Errorf("%s: got %+v, %v; want %+v", row.name, have, err, row.want)
		}
	}
}

// defaultSizeWithout is the size that create prefers without a source.
func defaultSizeWithout(source int64) int64 {
	if source > 0 {
		return 0
	}
	return defaultSize
}

func TestParametersExcludeEachOther(t *testing.T) {
	for _, values := range []map[string]string{
		{"iops": "3000", "iopsPerGB": "10"}, {"allowAutoIOPSPerGBIncrease": "true"},
		{"kmsKeyId": "key", "encrypted": "false"},
		{"type": "gp4"}, {"blockSize": "4096"}, {"throughput": "100"}, {"iops": "fast"},
	} {
		var p Parameters
		if err := params.Decode(values, &p); !backends.Is(err, backends.Invalid) {
			t.Errorf("%v: got %v, want Invalid", values, err)
		}
	}
}

// TestIOPSOfAttributesExcludeEachOther checks one VolumeAttributesClass, and two that are applied at the same time.
func TestIOPSOfAttributesExcludeEachOther(t *testing.T) {
	var m Mutable
	err := params.Decode(map[string]string{"iops": "3000", "iopsPerGB": "10"}, &m)
	if !backends.Is(err, backends.Invalid) {
		t.Errorf("in one class: got %v, want Invalid", err)
	}
	iops, perGB, other := Mutable{IOPS: ptr(int64(3000))}, Mutable{IOPSPerGB: ptr(int64(10))},
		Mutable{IOPSPerGB: ptr(int64(20))}
	for _, row := range []struct {
		name          string
		first, second Mutable
		want          bool
	}{
		{"iops and iopsPerGB", iops, perGB, false},
		{"iopsPerGB and iops", perGB, iops, false},
		{"two values of iopsPerGB", perGB, other, false},
		{"the same iopsPerGB", perGB, perGB, true},
		{"iopsPerGB after nothing", Mutable{}, perGB, true},
	} {
		c := change{Mutable: row.first}
		if got := c.merge(change{Mutable: row.second}); got != row.want {
			t.Errorf("%s: merged is %t, want %t", row.name, got, row.want)
		}
		if row.want && c.IOPSPerGB == nil {
			t.Errorf("%s: the merged change is %+v, want iopsPerGB in it", row.name, c)
		}
	}
}

// TestKeyImpliesEncryption: EC2 refuses a key without encryption (CreateVolume, KmsKeyId).
func TestKeyImpliesEncryption(t *testing.T) {
	for _, row := range []struct {
		values map[string]string
		want   *bool
	}{
		{map[string]string{}, nil},
		{map[string]string{"encrypted": "false"}, ptr(false)},
		{map[string]string{"encrypted": "true"}, ptr(true)},
		{map[string]string{"kmsKeyId": "key"}, ptr(true)},
		{map[string]string{"kmsKeyId": "key", "encrypted": "true"}, ptr(true)},
	} {
		var p Parameters
		err := params.Decode(row.values, &p)
		have := p.encryption()
		if err != nil || (have == nil) != (row.want == nil) || have != nil && *have != *row.want {
			t.Errorf("%v: got %v, %v", row.values, have, err)
		}
	}
}

// TestWhatTheDriverDoesNotDo: a class of aws-ebs-csi-driver may rule a feature out, and otherwise is told what to use.
func TestWhatTheDriverDoesNotDo(t *testing.T) {
	for _, row := range []struct{ key, value, want string }{
		{"ext4EncryptionSupport", "false", ""},
		{"ext4EncryptionSupport", "true", `use encrypted: "true"`},
		{"ext4encryptionsupport", "true", `use encrypted: "true"`},
		{"blockAttachUntilInitialized", "false", ""},
		{"blockAttachUntilInitialized", "true", "use fastSnapshotRestoreAvailabilityZones"},
		{"blockattachuntilinitialized", "true", "use fastSnapshotRestoreAvailabilityZones"},
	} {
		var p Parameters
		err := params.Decode(map[string]string{row.key: row.value}, &p)
		if row.want == "" {
			if err != nil {
				t.Errorf("%s=%s: got %v, want it accepted", row.key, row.value, err)
			}
			continue
		}
		if !backends.Is(err, backends.Invalid) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s=%s: got %v, want Invalid that says %q", row.key, row.value, err, row.want)
		}
	}
}

// TestIOPSPerGBHasThreeSpellings: aws-ebs-csi-driver takes any, and its own page has two of them.
func TestIOPSPerGBHasThreeSpellings(t *testing.T) {
	for _, key := range []string{"iopsPerGB", "iopsPerGb", "iopspergb"} {
		var p Parameters
		if err := params.Decode(map[string]string{key: "10"}, &p); err != nil || p.IOPSPerGB != 10 {
			t.Errorf("%s: got %+v, %v; want 10", key, p, err)
		}
	}
}

// TestVolumeTypeHasTwoKeys: aws-ebs-csi-driver keeps the older key of a VolumeAttributesClass as well.
func TestVolumeTypeHasTwoKeys(t *testing.T) {
	for _, key := range []string{"type", "volumeType"} {
		var m Mutable
		if err := params.Decode(map[string]string{key: "io2"}, &m); err != nil || m.Type == nil || *m.Type != "io2" {
			t.Errorf("%s: got %+v, %v", key, m, err)
		}
	}
}

func TestTagValues(t *testing.T) {
	for _, text := range []string{"", "pvc-1", "PVC/1=a+b@c_.", " pvc", "pvc ", "*", "a?b", `a\b`, "with\nnewline", "名前",
		"base64:", "base64:cHZj", strings.Repeat("\x01", 185)} {
		value := tagValue(text)
		if tagText(value) != text || len(value) > 256 || strings.ContainsAny(value, "*?\\\n \x01") {
			t.Errorf("%q becomes %q and then %q", text, value, tagText(value))
		}
	}
}

func TestTags(t *testing.T) {
	b := &backend{driver: "ebs.csi.stowage.dev", config: Config{ClusterID: "production",
		ExtraTags: map[string]string{"team": "storage"}}}
	claim := backends.Claim{Namespace: "ns", Name: "data", Volume: "pv"}
	tags, err := b.tagsFor(volumeNameTag, "pvc-1", Tags{Tag1: "for={{.PVCNamespace}}/{{ .PVCName }}={{.PVName}}",
		Tag2: "empty="}, claim)
	want := map[string]string{"team": "storage", "for": "ns/data=pv", "empty": "", "CSIVolumeName": "pvc-1",
		"ebs.csi.stowage.dev/cluster": "production"}
	if err != nil || len(tags) != len(want) {
		t.Fatalf("got %v, %v; want %v", tags, err, want)
	}
	for key, value := range want {
		if tags[key] != value {
			t.Errorf("the tag %s is %q, want %q", key, tags[key], value)
		}
	}
	for _, wrong := range []string{"no value", "=v", "k={{.Secret}}", "k={{", "k={{.PVCName", "k={{ printf .PVCName }}",
		"CSIVolumeName=other", "ebs.csi.stowage.dev/cluster=other", "aws:k=v"} {
		if _, err := b.tagsFor(volumeNameTag, "pvc-1", Tags{Tag1: wrong}, claim); !backends.Is(err, backends.Invalid) {
			t.Errorf("the tag %q: got %v, want Invalid", wrong, err)
		}
	}
}

// TestTagsHaveAnyName: aws-ebs-csi-driver takes any name behind the prefix (docs/tagging.md).
func TestTagsHaveAnyName(t *testing.T) {
	b := &backend{driver: "ebs.csi.stowage.dev", config: Config{ClusterID: "production"}}
	values := map[string]string{"tagSpecification_1": "a=1", "tagSpecification_9": "b=2", "tagSpecification_team": "c=3"}
	for name, tags := range map[string]func() (Tags, error){
		"StorageClass": func() (Tags, error) {
			var p Parameters
			err := params.Decode(values, &p)
			return p.Tags, err
		},
		"VolumeSnapshotClass": func() (Tags, error) {
			var p SnapshotParameters
			err := params.Decode(values, &p)
			return p.Tags, err
		},
	} {
		given, err := tags()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		have, err := b.tagsFor(volumeNameTag, "pvc-1", given, backends.Claim{})
		if err != nil || have["a"] != "1" || have["b"] != "2" || have["c"] != "3" {
			t.Errorf("%s: got %v, %v; want a=1, b=2 and c=3 in it", name, have, err)
		}
	}
}

// TestDeviceNames compares the names with the largest limit of an instance, and with the names that EC2 accepts.
func TestDeviceNames(t *testing.T) {
	names := deviceNames()
	accepted := regexp.MustCompile(`^/dev/(xvd[a-c][a-z]|xvdd[a-x]|sd[b-z])$`)
	for i, name := range names {
		if !accepted.MatchString(name) || slices.Contains(names[:i], name) {
			t.Errorf("name %d is %s", i, name)
		}
	}
	const most = 127 // "Amazon EBS volume limits for Amazon EC2 instances"
	if len(names) != most {
		t.Errorf("there are %d names, want %d", len(names), most)
	}
}
