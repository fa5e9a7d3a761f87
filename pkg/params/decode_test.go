package params

import (
	"reflect"
	"testing"
)

func TestDecodeFillsInDefaults(t *testing.T) {
	for name, values := range map[string]map[string]string{"nil": nil, "empty": {}} {
		t.Run(name, func(t *testing.T) {
			got := everything{Text: "old", Count: 77, Note: new(string), Options: []string{"old"}, common: common{Owner: "old"}}
			if err := Decode(values, &got); err != nil {
				t.Fatal(err)
			}
			if want := defaults(); !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestDecodeEveryType(t *testing.T) {
	got := everything{Derived: 5, Skipped: 6}
	err := Decode(map[string]string{
		"owner": "me", "text": " as it stands, =\"ü\" ", "fsType": "xfs", "policy": "OnRootMismatch", "wipe": "false",
		"sparse": "true",
		"count":  "100", "offset": "-9223372036854775808", "chunk": "4Ki", "options": "a,  b c ,d=e", "hooks": "post",
		"sector": "4096",
		"note":   "", "fast": "false", "iops": "100", "depth": "-1", "bandwidth": "0", "labels": "", "ignored": "x\x00",
		"alsoIgnored": "y",
	}, &got)
	if err != nil {
		t.Fatal(err)
	}
	want := everything{
		common: common{Owner: "me"}, Text: " as it stands, =\"ü\" ", FSType: "xfs", Policy: "OnRootMismatch", Sparse: true,
		Count: 100, Offset: -1 << 63, Chunk: 4096, Options: []string{"a", "b c", "d=e"}, Hooks: []string{"post"},
		Sector: 4096,
		Note:   new(""), Fast: new(false), IOPS: new(int64(100)), Depth: new(-1), Bandwidth: new(Size(0)),
		Labels:  new([]string(nil)),
		Derived: 5, Skipped: 6,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestDecodeEmptyListReplacesTheDefault(t *testing.T) {
	var got everything
	if err := Decode(map[string]string{"hooks": ""}, &got); err != nil {
		t.Fatal(err)
	}
	if got.Hooks != nil {
		t.Errorf("hooks are %q, want none", got.Hooks)
	}
}

func TestDecodeAlias(t *testing.T) {
	for _, key := range []string{"fsType", "fstype", "filesystem"} {
		var got everything
		if err := Decode(map[string]string{key: "xfs"}, &got); err != nil || got.FSType != "xfs" {
			t.Errorf("with key %q: FSType is %q, error %v", key, got.FSType, err)
		}
	}
}

func TestDecodeSpreadsOverTargets(t *testing.T) {
	var mode struct {
		Mode string `param:"mode"`
	}
	var all everything
	var metadata Metadata
	err := Decode(map[string]string{
		"mode": "fast", "text": "hello", "csi.storage.k8s.io/pvc/name": "claim",
		"csi.storage.k8s.io/node-stage-secret-name": "s",
	}, &mode, &all, &metadata)
	if err != nil {
		t.Fatal(err)
	}
	if mode.Mode != "fast" || all.Text != "hello" || metadata.PVCName != "claim" {
		t.Errorf("got %+v, %q, %+v", mode, all.Text, metadata)
	}
}

func TestDecodeWithoutTargetsKnowsNothing(t *testing.T) {
	if err := Decode(nil); err != nil {
		t.Errorf("nothing into nothing fails: %v", err)
	}
	mustBeInvalid(t, Decode(map[string]string{"a": "b"}), `parameter "a" is not known; no parameters are known here`)
}

func TestDecodeDoesNotAliasThePreviousValue(t *testing.T) {
	var first, second everything
	for _, target := range []*everything{&first, &second} {
		if err := Decode(nil, target); err != nil {
			t.Fatal(err)
		}
	}
	first.Hooks[0] = "changed"
	if second.Hooks[0] != "pre" {
		t.Error("two targets share the memory of a default")
	}
}

func TestDecodeChangesNothingOnFailure(t *testing.T) {
	before := everything{Text: "old", Count: 7, Options: []string{"old"}}
	after := before
	valid := rules{}
	if err := Decode(map[string]string{"text": "new", "mode": "new", "count": "0"}, &after, &valid); err == nil {
		t.Fatal("a count of 0 is accepted")
	}
	if !reflect.DeepEqual(before, after) || valid.Mode != "" {
		t.Errorf("a failed Decode left %+v and %+v", after, valid)
	}
	refusing := rules{err: errImpossible}
	if err := Decode(map[string]string{"text": "new", "mode": "new"}, &after, &refusing); err == nil {
		t.Fatal("what Validate refuses is accepted")
	}
	if !reflect.DeepEqual(before, after) || refusing.Mode != "" {
		t.Errorf("a failed Validate left %+v and %+v", after, refusing)
	}
}

func BenchmarkDecode(b *testing.B) {
	values := map[string]string{
		"fsType": "xfs", "count": "5", "csi.storage.k8s.io/pvc/name": "claim",
		"csi.storage.k8s.io/pvc/namespace": "default", "csi.storage.k8s.io/pv/name": "pvc-1",
	}
	b.ReportAllocs()
	for b.Loop() {
		var all everything
		var metadata Metadata
		if err := Decode(values, &all, &metadata); err != nil {
			b.Fatal(err)
		}
	}
}
