package params

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/tests/secrets"
)

var errImpossible = errors.New("mode new is impossible with these")

func TestDecodeRefusesValues(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"fsType", "ext5", `parameter "fsType" is "ext5": use ext4 or xfs`},
		{"fsType", "", `parameter "fsType" is "": use ext4 or xfs`},
		{"filesystem", "ext5", `parameter "filesystem" is "ext5": use ext4 or xfs`},
		{"policy", "always", `parameter "policy" is "always": use Always or OnRootMismatch`},
		{"wipe", "True", `parameter "wipe" is "True": use true or false, in lower case`},
		{"wipe", "1", `parameter "wipe" is "1": use true or false, in lower case`},
		{"fast", "yes", `parameter "fast" is "yes": use true or false, in lower case`},
		{"count", "0", `parameter "count" is "0": use a whole number without leading zeros, 1 to 100`},
		{"count", "101", `parameter "count" is "101": use a whole number without leading zeros, 1 to 100`},
		{"count", "", `parameter "count" is "": use a whole number without leading zeros, 1 to 100`},
		{"offset", "+1", `parameter "offset" is "+1": use a whole number without leading zeros`},
		{"offset", "0777", `parameter "offset" is "0777": use a whole number without leading zeros`},
		{"offset", "-0", `parameter "offset" is "-0": use a whole number without leading zeros`},
		{"offset", "9223372036854775808",
			`parameter "offset" is "9223372036854775808": use a whole number without leading zeros`},
		{"iops", "99", `parameter "iops" is "99": use a whole number without leading zeros, at least 100`},
		{"depth", "65", `parameter "depth" is "65": use a whole number without leading zeros, at most 64`},
		{"sector", "1024", `parameter "sector" is "1024": use 512 or 4096`},
		{"chunk", "4095", `parameter "chunk" is "4095": use a size in bytes such as 1048576, 500M or 10Gi, 4Ki to 1Mi`},
		{"bandwidth", "-1", `parameter "bandwidth" is "-1": use a size in bytes such as 1048576, 500M or 10Gi`},
		{"hooks", "pre,mid", `parameter "hooks" is "pre,mid": use entries separated by commas, none of them empty, each of them pre or post`},
		{"options", "a,,b", `parameter "options" is "a,,b": use entries separated by commas, none of them empty`},
		{"labels", ",", `parameter "labels" is ",": use entries separated by commas, none of them empty`},
		{"text", "a\x00\n\x1b[31m\u202e", `parameter "text" is "a\x00\n\x1b[31m\u202e": use text without control characters`},
		{"text", "\xff", `parameter "text" is "\xff": use text without control characters`},
		{"options", "a\tb", `parameter "options" is "a\tb": use entries separated by commas, none of them empty`},
		{"mapPassword", "hunter2",
			`parameter "mapPassword" has a value that is not allowed, and that is not shown: use none`},
	} {
		t.Run(fmt.Sprintf("%s=%q", c.key, c.value), func(t *testing.T) {
			mustBeInvalid(t, Decode(map[string]string{c.key: c.value}, new(everything)), c.want)
		})
	}
}

func TestDecodeRefusesUnknownKeys(t *testing.T) {
	const known = "; the known parameters are bandwidth, chunk, count, depth, fast, fsType, hooks, iops, labels, " +
		"mapPassword, note, " +
		"offset, options, owner, policy, sector, sparse, text, wipe"
	for _, c := range []struct{ key, want string }{
		{"FSTYPE", `parameter "FSTYPE" is not known: did you mean "fsType" (upper and lower case differ)?`},
		{"fsTypes", `parameter "fsTypes" is not known: did you mean "fsType"?`},
		{"fsTpye", `parameter "fsTpye" is not known: did you mean "fsType"?`},
		{"filesystme", `parameter "filesystme" is not known: did you mean "fsType"?`},
		{"ipos", `parameter "ipos" is not known: did you mean "iops"?`},
		{"bandwdth", `parameter "bandwdth" is not known: did you mean "bandwidth"?`},
		{"ignore", `parameter "ignore" is not known: did you mean "ignored"?`},
		{"colour", `parameter "colour" is not known` + known},
		{"", `parameter "" is not known` + known},
		{"a\nb", `parameter "a\nb" is not known` + known},
		{"csi.storage.k8s.io/fstype", `parameter "csi.storage.k8s.io/fstype" is not known` + known},
	} {
		t.Run(fmt.Sprintf("%q", c.key), func(t *testing.T) {
			mustBeInvalid(t, Decode(map[string]string{c.key: "hunter2"}, new(everything)), c.want)
		})
	}
}

func TestDecodeRefusesUnknownKeysOfTheReservedFamily(t *testing.T) {
	for key, want := range map[string]string{
		"csi.storage.k8s.io/provisioner-secret-nam": `did you mean "csi.storage.k8s.io/provisioner-secret-name"?`,
		"csi.storage.k8s.io/pvc/Name":               `did you mean "csi.storage.k8s.io/pvc/name" (upper and lower case differ)?`,
		"csi.storage.k8s.io/foo": `the known parameters are csi.storage.k8s.io/pv/name, csi.storage.k8s.io/pvc/name, ` +
			`csi.storage.k8s.io/pvc/namespace`,
	} {
		err := Decode(map[string]string{key: "hunter2"}, new(Metadata))
		if !failure.Is(err, failure.Invalid) || !strings.HasSuffix(err.Error(), want) ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error is %v, want it to end with %s", key, err, want)
		}
	}
}

func TestDecodeNamesAllThatIsWrongInOrder(t *testing.T) {
	err := Decode(map[string]string{
		"zebra": "1", "wipe": "no", "fsType": "xfs", "filesystem": "xfs", "apple": "2", "Count": "4", "text": "fine",
	}, new(everything), new(Metadata))
	mustBeInvalid(t, err, `parameter "Count" is not known: did you mean "count" (upper and lower case differ)?; `+
		`parameter "apple" is not known; `+
		`parameters "filesystem" and "fsType" are the same: give one of them; `+
		`parameter "wipe" is "no": use true or false, in lower case; `+
		`parameter "zebra" is not known; `+
		`the known parameters are bandwidth, chunk, count, csi.storage.k8s.io/pv/name, csi.storage.k8s.io/pvc/name, `+
		`csi.storage.k8s.io/pvc/namespace, depth, fast, fsType, hooks, iops, labels, mapPassword, note, offset, options, owner, `+
		`policy, sector, sparse, text, wipe`)
}

func TestDecodeTruncatesLongTexts(t *testing.T) {
	long := strings.Repeat("ä", 1000)
	err := Decode(map[string]string{"count": long, "x" + long: "v", strings.Repeat("y", 1<<20): "v"}, new(everything))
	if !failure.Is(err, failure.Invalid) || len(err.Error()) > 1000 {
		t.Fatalf("an error of %d bytes, kind %v", len(err.Error()), failure.KindOf(err))
	}
	for _, part := range []string{
		`parameter "count" is "` + strings.Repeat("ä", 32) + `"... (2000 bytes): use`,
		`parameter "x` + strings.Repeat("ä", 31) + `"... (2001 bytes) is not known`,
		`(1048576 bytes) is not known`,
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
}

func TestDecodeValidates(t *testing.T) {
	outOfRange := failure.Errorf(failure.OutOfRange, "too large")
	unknown := failure.Errorf(failure.Unknown, "no idea")
	for name, c := range map[string]struct {
		errs []error
		kind failure.Kind
		text string
	}{
		"plain":        {[]error{errImpossible}, failure.Invalid, errImpossible.Error()},
		"with a kind":  {[]error{outOfRange}, failure.OutOfRange, "too large"},
		"kind unknown": {[]error{unknown}, failure.Unknown, "no idea"},
		"one of two":   {[]error{nil, outOfRange}, failure.OutOfRange, "too large"},
		"two":          {[]error{outOfRange, errImpossible}, failure.Invalid, errImpossible.Error() + "; too large"},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := rules{err: c.errs[0]}, alsoRules{}
			if len(c.errs) > 1 {
				second.err = c.errs[1]
			}
			err := Decode(nil, &first, &second)
			if err == nil || failure.KindOf(err) != c.kind || err.Error() != c.text {
				t.Errorf("error is %v of kind %v, want %s of kind %v", err, failure.KindOf(err), c.text, c.kind)
			}
			for _, cause := range c.errs {
				if cause != nil && !errors.Is(err, cause) {
					t.Errorf("%v does not wrap %v", err, cause)
				}
			}
		})
	}
}

// alsoRules is a second target with Validate, on a value receiver.
type alsoRules struct{ err error }

func (r alsoRules) Validate() error { return r.err }

func TestDecodeValidatesDecodedValuesOnly(t *testing.T) {
	target := &strict{}
	mustBeInvalid(t, Decode(map[string]string{"level": "9"}, target), "level 9 is odd")
	mustBeInvalid(t, Decode(map[string]string{"level": "x"}, target),
		`parameter "level" is "x": use a whole number without leading zeros`)
	if err := Decode(map[string]string{"level": "8"}, target); err != nil || target.Level != 8 {
		t.Errorf("level is %d, error %v; want 8", target.Level, err)
	}
}

type strict struct {
	Level int `param:"level"`
}

func (s *strict) Validate() error {
	if s.Level%2 == 1 {
		return fmt.Errorf("level %d is odd", s.Level)
	}
	return nil
}

// A value or a key may hold several options. The error becomes an event, and shows no secret among them.
func TestRefusalsHideJoinedSecrets(t *testing.T) {
	for _, joined := range secrets.Joined() {
		for what, values := range map[string]map[string]string{
			"a text": {"text": joined + "\x00"}, "a list": {"options": joined + ",,"}, "an enum": {"fsType": joined},
			"a number": {"count": joined}, "a size": {"chunk": joined}, "a flag": {"wipe": joined}, "a key": {joined: "x"},
		} {
			err := Decode(values, new(everything))
			if !failure.Is(err, failure.Invalid) || strings.Contains(err.Error(), secrets.Canary) {
				t.Errorf("%s, %q: got %v, want Invalid without the secret", what, joined, err)
			}
		}
	}
}
