package powerloss

// pageSize is the unit of an image in bytes.
const pageSize = 4096

// page is a page of a disk. It is never changed once an image holds it, so that images can share it.
type page [pageSize]byte

// image is the content of a disk: its pages, with nil for a page of zeros. A copy of the slice is a copy of the disk.
type image []*page

// span is the part of an access that lies within one page.
type span struct {
	page     int
	from, to int // within the page
	at       int // within the access
}

// spans splits an access into parts within one page each.
func spans(offset int64, length int) []span {
	var list []span
	for at := 0; at < length; {
		position := offset + int64(at)
		from := int(position % pageSize)
		to := min(pageSize, from+length-at)
		list = append(list, span{page: int(position / pageSize), from: from, to: to, at: at})
		at += to - from
	}
	return list
}

// read reads from the offset into the buffer.
func (m image) read(offset int64, buffer []byte) {
	for _, s := range spans(offset, len(buffer)) {
		part := buffer[s.at : s.at+s.to-s.from]
		if p := m[s.page]; p != nil {
			copy(part, p[s.from:s.to])
		} else {
			clear(part)
		}
	}
}

// write writes data at the offset.
func (m image) write(offset int64, data []byte) {
	for _, s := range spans(offset, len(data)) {
		p := new(page)
		if old := m[s.page]; old != nil {
			*p = *old
		}
		copy(p[s.from:s.to], data[s.at:])
		m[s.page] = p
	}
}

// zero writes zeros at the offset.
func (m image) zero(offset, length int64) {
	for _, s := range spans(offset, int(length)) {
		if m[s.page] == nil {
			continue
		}
		if s.to-s.from == pageSize {
			m[s.page] = nil
			continue
		}
		p := *m[s.page]
		clear(p[s.from:s.to])
		m[s.page] = &p
	}
}
