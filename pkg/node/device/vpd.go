package device

import (
	"encoding/binary"
	"encoding/hex"
)

// vitalProductData reads the identifiers in the VPD pages of a SCSI device, as shown by sysfs (SPC-5, sections 7.7.9
// "Device Identification" and 7.7.19 "Unit Serial Number").
func vitalProductData(dir string) ([]identifier, error) {
	var all []identifier
	serial, ok, err := attribute(dir, "device/vpd_pg80")
	if err != nil {
		return nil, err
	}
	if body := pageBody(serial); ok && len(body) > 0 {
		if text := plainText(body); text != "" {
			all = append(all, identifier{attribute: "device/vpd_pg80", value: text})
		}
	}
	names, ok, err := attribute(dir, "device/vpd_pg83")
	if err != nil {
		return nil, err
	}
	if ok {
		all = append(all, designators(pageBody(names))...)
	}
	return all, nil
}

// pageBody returns the contents of a VPD page after its header of four bytes, whose last two bytes are the length of
// the contents; nil for a truncated page.
func pageBody(page []byte) []byte {
	const header = 4
	if len(page) < header {
		return nil
	}
	length := int(binary.BigEndian.Uint16(page[2:]))
	if len(page) < header+length {
		return nil
	}
	return page[header : header+length]
}

// Fields of a designation descriptor (SPC-5, section 7.7.9.2).
const (
	codeSetBinary       = 1
	associationUnit     = 0
	designatorHeaderLen = 4
)

// designators returns the names of the logical unit itself among the descriptors of a Device Identification page: text
// as it is, binary names in lower-case hexadecimal digits.
func designators(body []byte) []identifier {
	var all []identifier
	for len(body) >= designatorHeaderLen {
		codeSet, association := body[0]&0x0f, body[1]>>4&3
		length := int(body[3])
		if len(body) < designatorHeaderLen+length {
			return all
		}
		name := body[designatorHeaderLen : designatorHeaderLen+length]
		body = body[designatorHeaderLen+length:]
		value := plainText(name)
		if codeSet == codeSetBinary {
			value = hex.EncodeToString(name)
		}
		if association == associationUnit && value != "" {
			all = append(all, identifier{attribute: "device/vpd_pg83", value: value})
		}
	}
	return all
}
