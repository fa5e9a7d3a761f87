package device

import (
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// identifier is one name that a device reports for itself.
type identifier struct {
	attribute string // the sysfs attribute that it was read from
	value     string
	limit     int // the transport cuts longer names to so many bytes; 0 for never
}

// is reports whether the identifier matches the serial number.
func (i identifier) is(serial string) bool {
	return i.value == serial || i.limit > 0 && len(serial) > i.limit && i.value == serial[:i.limit]
}

// textAttributes returns the attributes that hold one identifier as text, below a block device's sysfs directory. A
// virtio disk's "serial" is cut to 20 bytes (VIRTIO_BLK_ID_BYTES of virtio 1.2, section 5.2.6).
func textAttributes() []identifier {
	return []identifier{
		{attribute: "serial", limit: 20}, // virtio-blk
		{attribute: "device/serial"},     // NVMe controller, MMC
		{attribute: "wwid"},              // NVMe namespace
		{attribute: "uuid"},              // NVMe namespace
		{attribute: "nguid"},             // NVMe namespace
		{attribute: "eui"},               // NVMe namespace
		{attribute: "device/wwid"},       // SCSI
		{attribute: "dm/uuid"},           // device-mapper
	}
}

// identifiers reads all identifiers that the device described in a sysfs directory reports.
func identifiers(dir string) ([]identifier, error) {
	var all []identifier
	for _, id := range textAttributes() {
		raw, ok, err := attribute(dir, id.attribute)
		if err != nil {
			return nil, err
		}
		if id.value = plainText(raw); ok && id.value != "" {
			all = append(all, id)
		}
	}
	vital, err := vitalProductData(dir)
	return append(all, vital...), err
}

// plainText strips the padding that firmware puts around a serial number.
func plainText(raw []byte) string { return strings.Trim(string(raw), " \t\n\x00") }

// prove compares the device with the source's description of it.
func (d *Device) prove(source backends.Device) error {
	if d.SizeBytes < source.Identity.SizeBytes {
		kind := backends.Unavailable
		if source.Image {
			kind = backends.Invalid
		}
		return backends.Errorf(kind, "%s, found through %q, has %d bytes: the volume has %d", d, source.Path, d.SizeBytes,
			source.Identity.SizeBytes)
	}
	if source.Identity.Serial == "" || source.Image {
		return nil
	}
	return d.proveSerial(source)
}

func (d *Device) proveSerial(source backends.Device) error {
	ids, err := identifiers(sysfsDir(d.Major, d.Minor))
	if err != nil {
		return backends.Errorf(backends.Unavailable, "reading the identity of %s: %w", d, err)
	}
	want := source.Identity.Serial
	if slices.ContainsFunc(ids, func(id identifier) bool { return id.is(want) }) {
		return nil
	}
	if len(ids) == 0 {
		return backends.Errorf(backends.Unavailable, "%s, found through %q, reports no serial number: the volume's is %q", d,
			source.Path, want)
	}
	return backends.Errorf(backends.Unavailable,
		"%s, found through %q, is another device: it reports %s, the volume's serial number is %q",
		d, source.Path, listed(ids), want)
}

func listed(ids []identifier) string { return strings.Join(texts(ids), ", ") }

// texts formats each identifier as "attribute=value".
func texts(ids []identifier) []string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.attribute + "=" + id.value
	}
	return texts
}

// Identifiers returns the identifiers of the block device of a number, each as "attribute=value". Kinds: Unavailable
// when an existing one cannot be read.
func Identifiers(major, minor uint32) ([]string, error) {
	ids, err := identifiers(sysfsDir(major, minor))
	if err != nil {
		return nil, backends.Errorf(backends.Unavailable, "reading the identity of device %d:%d: %w", major, minor, err)
	}
	return texts(ids), nil
}
