package params

import (
	"reflect"
	"testing"
)

func TestDescribe(t *testing.T) {
	want := []Field{
		{Key: "owner", Type: "string", Default: "root"},
		{Key: "text", Type: "string", Doc: "Any text."},
		{Key: "fsType", Aliases: []string{"fstype", "filesystem"}, Type: "string", Allowed: "ext4 or xfs"},
		{Key: "policy", Type: "string", Default: "Always", Allowed: "Always or OnRootMismatch"},
		{Key: "wipe", Type: "bool", Default: "true", Allowed: "true or false"},
		{Key: "sparse", Type: "bool", Default: "false", Allowed: "true or false"},
		{Key: "count", Type: "integer", Default: "3", Allowed: "1 to 100"},
		{Key: "offset", Type: "integer"},
		{Key: "chunk", Type: "size", Allowed: "4Ki to 1Mi"},
		{Key: "options", Type: "list"},
		{Key: "hooks", Type: "list", Default: "pre,post", Allowed: "pre or post"},
		{Key: "sector", Type: "integer", Default: "512", Allowed: "512 or 4096"},
		{Key: "mapPassword", Type: "string", Allowed: "none"},
		{Key: "note", Type: "string", Mutable: true},
		{Key: "fast", Type: "bool", Allowed: "true or false", Mutable: true},
		{Key: "iops", Type: "integer", Allowed: "at least 100", Mutable: true},
		{Key: "depth", Type: "integer", Allowed: "at most 64", Mutable: true},
		{Key: "bandwidth", Type: "size", Mutable: true},
		{Key: "labels", Type: "list", Mutable: true},
		{Key: "ignored", Aliases: []string{"alsoIgnored"}, Ignored: true},
	}
	for _, target := range []any{everything{}, &everything{Text: "given"}} {
		got := Describe(target)
		if len(got) != len(want) {
			t.Fatalf("%d fields, want %d: %+v", len(got), len(want), got)
		}
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Errorf("field %d is %+v, want %+v", i, got[i], want[i])
			}
		}
	}
}
