package params

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// FuzzDecode decodes two arbitrary keys and values into a target with every type.
func FuzzDecode(f *testing.F) {
	for _, seed := range [][4]string{
		{"fsType", "xfs", "text", "a\x00b"}, {"chunk", "1Mi", "FSTYPE", "x"}, {"hooks", "pre,post", "options", "a, ,b"},
		{"count", "-1", "bandwidth", "8Ei"}, {"csi.storage.k8s.io/node-stage-secret-name", "../..", "wipe", "TRUE"},
		{"labels", "", "note", "\xff"}, {"mapPassword", "hunter2", strings.Repeat("k", 300), "v"},
		{"policy", "Always", "policy", ""},
		{"fsType", "xfs", "filesystem", "ext4"}, {"iops", "100", "depth", "9999999999999999999"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, key1, value1, key2, value2 string) {
		values := map[string]string{key1: value1, key2: value2}
		var x everything
		var m Metadata
		if err := Decode(values, &x, &m); err != nil {
			checkRefusal(t, err, values)
			if !reflect.DeepEqual(x, everything{}) || m != (Metadata{}) {
				t.Errorf("a failed Decode left %+v, %+v", x, m)
			}
			return
		}
		checkRoundTrip(t, x)
	})
}

func checkRefusal(t *testing.T, err error, values map[string]string) {
	t.Helper()
	text := err.Error()
	if !failure.Is(err, failure.Invalid) {
		t.Errorf("kind %v, want invalid", failure.KindOf(err))
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		t.Errorf("the error's text is not fit to be shown: %q", text)
	}
	if len(text) > 2500 {
		t.Errorf("the error's text has %d bytes", len(text))
	}
	const password = "hunter2"
	delete(values, "mapPassword")
	if strings.Contains(text, password) && !strings.Contains(fmt.Sprint(values), password) {
		t.Errorf("the error shows a password: %s", text)
	}
}

func checkRoundTrip(t *testing.T, x everything) {
	t.Helper()
	var again everything
	if err := Decode(Encode(x), &again); err != nil {
		t.Fatalf("%+v encodes to %q, which is refused: %v", x, Encode(x), err)
	}
	if !reflect.DeepEqual(x, again) {
		t.Errorf("%+v encodes to %q, which is %+v", x, Encode(x), again)
	}
	if a, b := Fingerprint(x), Fingerprint(again); a != b || len(a) != 32 {
		t.Errorf("fingerprints %s and %s of equal values", a, b)
	}
}
