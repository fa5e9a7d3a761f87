package device

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// sysfs creates a directory that looks like a device's in sysfs.
func sysfs(t *testing.T, attributes map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, value := range attributes {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestIdentifiers(t *testing.T) {
	const uuid = "1b4e28ba-2fa1-11d2-883f-b9a761bde3fb"
	page83 := "\x00\x83\x00\x23" +
		"\x02\x00\x00\x0d" + "data-disk-one" + // text, vendor specific, of the unit
		"\x01\x03\x00\x08" + "\x50\x01\x43\x80\x12\x34\xab\xcd" + // binary, NAA
		"\x02\x10\x00\x02" + "p1" // text, of the port
	for name, test := range map[string]struct {
		attributes map[string]string
		serial     string
		want       bool
	}{
		"nvme serial":            {map[string]string{"device/serial": "vol0123456789abcdef \n"}, "vol0123456789abcdef", true},
		"nvme other serial":      {map[string]string{"device/serial": "vol0123456789abcdeF\n"}, "vol0123456789abcdef", false},
		"nvme wwid":              {map[string]string{"wwid": "nvme.1d0f-766f6c\n"}, "nvme.1d0f-766f6c", true},
		"virtio":                 {map[string]string{"serial": uuid[:20]}, uuid, true},
		"virtio, other":          {map[string]string{"serial": uuid[:19] + "x"}, uuid, false},
		"virtio, short and cut":  {map[string]string{"serial": uuid[:10]}, uuid, false},
		"others are never cut":   {map[string]string{"device/serial": uuid[:20]}, uuid, false},
		"longer than wanted":     {map[string]string{"serial": uuid[:20]}, uuid[:10], false},
		"empty":                  {map[string]string{"serial": "  \n"}, " ", false},
		"none":                   {nil, uuid, false},
		"scsi unit serial":       {map[string]string{"device/vpd_pg80": "\x00\x80\x00\x06 abc  "}, "abc", true},
		"scsi page cut short":    {map[string]string{"device/vpd_pg80": "\x00\x80\x00\x09abc"}, "abc", false},
		"scsi page without body": {map[string]string{"device/vpd_pg80": "\x00"}, "", false},
		"scsi text name":         {map[string]string{"device/vpd_pg83": page83}, "data-disk-one", true},
		"scsi naa":               {map[string]string{"device/vpd_pg83": page83}, "500143801234abcd", true},
		"scsi port name":         {map[string]string{"device/vpd_pg83": page83}, "p1", false},
		"scsi wwid":              {map[string]string{"device/wwid": "naa.500143801234abcd\n"}, "naa.500143801234abcd", true},
		"logical volume":         {map[string]string{"dm/uuid": "LVM-abc\n"}, "LVM-abc", true},
	} {
		t.Run(name, func(t *testing.T) {
			ids, err := identifiers(sysfs(t, test.attributes))
			if err != nil {
				t.Fatal(err)
			}
			got := false
			for _, id := range ids {
				got = got || id.is(test.serial)
			}
			if got != test.want {
				t.Errorf("%v: is %q = %t, want %t", ids, test.serial, got, test.want)
			}
		})
	}
}

// An attribute that exists and cannot be read is an error: it never counts as missing.
func TestIdentifiersUnreadable(t *testing.T) {
	dir := sysfs(t, map[string]string{"wwid": "eui.1"})
	if err := os.Mkdir(filepath.Join(dir, "serial"), 0o700); err != nil {
		t.Fatal(err)
	}
	if ids, err := identifiers(dir); err == nil {
		t.Errorf("got %v without an error, though one attribute cannot be read", ids)
	}
}

func TestProveSerialNamesBoth(t *testing.T) {
	d := &Device{Path: "/dev/none", Major: 4095, Minor: 1}
	err := d.prove(backends.Device{Path: "/dev/disk/by-id/x", Identity: backends.Identity{Serial: "s"}})
	wantKind(t, err, backends.Unavailable)
}

func FuzzDesignators(f *testing.F) {
	f.Add([]byte("\x00\x83\x00\x05\x02\x00\x00\x01a"))
	f.Fuzz(func(t *testing.T, page []byte) {
		for _, id := range designators(pageBody(page)) {
			if id.value == "" {
				t.Error("an empty identifier")
			}
		}
	})
}
