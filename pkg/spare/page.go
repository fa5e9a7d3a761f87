package spare

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// pageSize is how many bytes the kernel writes at once. head is the length of the header before key and note.
const (
	pageSize = 4096
	head     = 4 + 8 + 2 + 2
)

// page is one note in the form of the file: a checksum of the rest, a number that is higher in the later of two notes
// of a key, the lengths of key and note, and these two. A page of zeros is free.
type page struct {
	turn uint64
	key  string
	note []byte
}

// encode fails if the note does not fit. Kinds: Exhausted.
func (p page) encode() ([]byte, error) {
	if room := pageSize - head; len(p.key)+len(p.note) > room {
		return nil, failure.Errorf(failure.Exhausted, "the note of %.64q has %d bytes: the room that is kept for one has %d",
			p.key, len(p.key)+len(p.note), room)
	}
	data := make([]byte, pageSize)
	binary.LittleEndian.PutUint64(data[4:], p.turn)
	binary.LittleEndian.PutUint16(data[12:], uint16(len(p.key)))
	binary.LittleEndian.PutUint16(data[14:], uint16(len(p.note)))
	copy(data[head:], p.key)
	copy(data[head+len(p.key):], p.note)
	binary.LittleEndian.PutUint32(data, crc32.ChecksumIEEE(data[4:]))
	return data, nil
}

// decode parses a page; ok is false if it is free, or incomplete after a kill.
func decode(data []byte) (p page, ok bool) {
	if binary.LittleEndian.Uint32(data) != crc32.ChecksumIEEE(data[4:]) {
		return page{}, false
	}
	p.turn = binary.LittleEndian.Uint64(data[4:])
	key, note := int(binary.LittleEndian.Uint16(data[12:])), int(binary.LittleEndian.Uint16(data[14:]))
	if p.turn == 0 || head+key+note > pageSize {
		return page{}, false
	}
	p.key = string(data[head : head+key])
	p.note = data[head+key : head+key+note]
	return p, true
}
