package params

import (
	"errors"
	"maps"
	"reflect"
	"strconv"
	"sync"
	"testing"
)

func decoded(t *testing.T, values map[string]string) everything {
	t.Helper()
	var x everything
	if err := Decode(values, &x); err != nil {
		t.Fatal(err)
	}
	return x
}

func TestEncodeIsCanonicalAndWithoutDefaults(t *testing.T) {
	for name, c := range map[string]struct{ values, want map[string]string }{
		"nothing": {nil, map[string]string{}},
		"defaults": {map[string]string{"owner": "root", "wipe": "true", "hooks": "pre,post", "count": "3", "chunk": "4096",
			"text": ""}, map[string]string{"chunk": "4Ki"}},
		"spelling": {map[string]string{"chunk": "1048576", "bandwidth": "1024Mi", "options": "a , b", "filesystem": "xfs"},
			map[string]string{"chunk": "1Mi", "bandwidth": "1Gi", "options": "a,b", "fsType": "xfs"}},
		"zero against a default": {map[string]string{"owner": "", "wipe": "false", "hooks": ""},
			map[string]string{"owner": "", "wipe": "false", "hooks": ""}},
		"pointers to zero": {map[string]string{"note": "", "fast": "false", "bandwidth": "0", "depth": "0", "labels": ""},
			map[string]string{"note": "", "fast": "false", "bandwidth": "0", "depth": "0", "labels": ""}},
		"ignored": {map[string]string{"ignored": "x"}, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			x := decoded(t, c.values)
			got := Encode(&x)
			if !maps.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if again := decoded(t, got); !reflect.DeepEqual(again, x) {
				t.Errorf("decoded again: %+v, want %+v", again, x)
			}
			if byValue := Encode(x); !maps.Equal(byValue, got) {
				t.Errorf("the struct itself encodes to %q, a pointer to it to %q", byValue, got)
			}
		})
	}
}

func TestEncodeMetadata(t *testing.T) {
	want := Metadata{PVCNamespace: "a", PVCName: "b", PVName: "c"}
	var got Metadata
	if err := Decode(Encode(want), &got); err != nil || got != want {
		t.Errorf("got %+v, error %v; want %+v", got, err, want)
	}
}

func TestNilTargetsHaveNoValues(t *testing.T) {
	var none *everything
	if got := Encode(nil); len(got) != 0 {
		t.Errorf("nil has the values %q", got)
	}
	if got := Encode(none); len(got) != 0 {
		t.Errorf("a nil pointer has the values %q", got)
	}
	if Fingerprint(nil, none) != Fingerprint() {
		t.Error("nil targets change the fingerprint")
	}
}

func TestFingerprintIsTheSameForEqualValues(t *testing.T) {
	want := Fingerprint(decoded(t, map[string]string{"bandwidth": "1Gi", "fsType": "xfs"}))
	for name, values := range map[string]map[string]string{
		"spelled in bytes":  {"bandwidth": "1073741824", "fsType": "xfs"},
		"alias":             {"bandwidth": "1024Mi", "fstype": "xfs"},
		"defaults spelled":  {"bandwidth": "1Gi", "fsType": "xfs", "wipe": "true", "owner": "root"},
		"an ignored key":    {"bandwidth": "1Gi", "fsType": "xfs", "ignored": "secret"},
		"a default in list": {"bandwidth": "1Gi", "fsType": "xfs", "hooks": " pre ,post"},
	} {
		if got := Fingerprint(decoded(t, values)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestFingerprintTellsValuesApart(t *testing.T) {
	seen := map[string]string{}
	for name, values := range map[string]map[string]string{
		"nothing": nil, "xfs": {"fsType": "xfs"}, "ext4": {"fsType": "ext4"}, "text": {"text": "xfs"},
		"note":       {"note": "xfs"},
		"note empty": {"note": ""}, "zero bandwidth": {"bandwidth": "0"}, "hooks empty": {"hooks": ""},
		"hooks swapped":      {"hooks": "post,pre"},
		"running together 1": {"text": "a", "note": "bc"}, "running together 2": {"text": "ab", "note": "c"},
	} {
		got := Fingerprint(decoded(t, values))
		if other, taken := seen[got]; taken {
			t.Errorf("%s and %s have the fingerprint %s", name, other, got)
		}
		seen[got] = name
	}
}

// TestFingerprintNeverChanges pins the algorithm: a fingerprint is stored with each volume, for the volume's life.
func TestFingerprintNeverChanges(t *testing.T) {
	x := decoded(t, map[string]string{"bandwidth": "1Gi", "fsType": "xfs", "count": "4", "options": "a,b"})
	for got, want := range map[string]string{
		Fingerprint():  "e3b0c44298fc1c149afbf4c8996fb924", // sha256 of nothing
		Fingerprint(x): "cc465312b70ddc70e9136a6d7c41fc7a",
	} {
		if got != want {
			t.Errorf("fingerprint %s, want %s", got, want)
		}
	}
}

func TestFingerprintSurvivesANewParameter(t *testing.T) {
	type before struct {
		Pool string `param:"pool" default:"image"`
	}
	type after struct {
		New  string `param:"aNew" default:"x"`
		Pool string `param:"pool" default:"image"`
		More *int64 `param:"more"`
	}
	for _, values := range []map[string]string{nil, {"pool": "image"}, {"pool": "directory"}} {
		var old before
		var now after
		if err := Decode(values, &old); err != nil {
			t.Fatal(err)
		}
		if err := Decode(values, &now); err != nil {
			t.Fatal(err)
		}
		if Fingerprint(&old) != Fingerprint(&now) {
			t.Errorf("%q: a new parameter changes the fingerprint", values)
		}
	}
}

func TestFingerprintCountsTargetsTogether(t *testing.T) {
	x := decoded(t, map[string]string{"text": "a"})
	m := Metadata{PVCName: "b"}
	if Fingerprint(x, m) != Fingerprint(m, x) {
		t.Error("the order of targets matters")
	}
	if Fingerprint(x, m) == Fingerprint(x) {
		t.Error("the second target does not matter")
	}
}

// A Schemas with cached tags gives the same results as a new one, also to concurrent callers.
func TestSchemasRemember(t *testing.T) {
	type Inner struct {
		Level int `param:"level" default:"3" min:"1" max:"9"`
	}
	type target struct {
		Inner
		Name *string `param:"name"`
	}
	var schemas Schemas
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			level, name := i%9+1, strconv.Itoa(i)
			var one, other target
			values := map[string]string{"level": strconv.Itoa(level), "name": name}
			if err := errors.Join(schemas.Decode(values, &one), Decode(values, &other)); err != nil {
				t.Error(err)
			}
			if one.Level != level || *one.Name != name || *other.Name != name {
				t.Errorf("%v is decoded as %+v and %+v", values, one, other)
			}
			if have, want := schemas.Fingerprint(&one), Fingerprint(&other); have != want ||
				!maps.Equal(schemas.Encode(&one), Encode(&other)) {
				t.Errorf("%v has the fingerprints %s and %s", values, have, want)
			}
			if err := schemas.Decode(map[string]string{"level": "10"}, &one); err == nil {
				t.Error("a value out of range is taken")
			}
		})
	}
	group.Wait()
}
