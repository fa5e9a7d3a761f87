package filesystem

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"sort"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
)

// The on-disk format of the log of an xfs (xfs_log_format.h in the kernel's fs/xfs/libxfs). Positions are in basic
// blocks. The log is a ring, and each block begins with the number of the cycle in which it was written.
const (
	logBlock       = 512
	logMagic       = 0xfeedbabe
	logUnmount     = 0x20              // XLOG_UNMOUNT_TRANS
	logTransaction = 0x5452414e        // XFS_TRANS_HEADER_MAGIC
	logBuffer      = 0x123c            // XFS_LI_BUF
	logHeaderSpan  = 32 << 10          // bytes of a record for each block of its header
	logRecordMost  = 256<<10/512 + 256 // blocks of a record: XLOG_MAX_RECORD_BSIZE, and room for its header and padding
)

// UnreplayedXFS reports whether the log of an xfs contains anything that must be replayed before its files can be seen.
// A log that was closed by an unmount contains nothing. Neither does the log of a frozen filesystem, which contains
// only its superblock. Anything that is not understood must be replayed. Kinds: Unavailable.
func UnreplayedXFS(ctx context.Context, dev *os.File, size int64) (bool, error) {
	call := deadline.Call{Name: fmt.Sprintf("reading the log of the xfs on %q", dev.Name())}
	return deadline.Do(ctx, call, func(context.Context) (bool, error) {
		w := &window{r: dev, size: size}
		l, ok := logOf(w)
		clean := ok && l.clean()
		if w.err != nil {
			return false, backends.Errorf(backends.Unavailable, "%s: %w", call.Name, w.err)
		}
		return !clean, nil
	}, nil)
}

// xfsLog is a log that is on the same device as its filesystem.
type xfsLog struct {
	w      *window
	start  int64 // in bytes
	blocks int64
}

func logOf(w *window) (xfsLog, bool) {
	sb := w.at(0, 512)
	if sb == nil {
		return xfsLog{}, false
	}
	block := int64(binary.BigEndian.Uint32(sb[4:]))
	start, ok := logStart(sb, block)
	l := xfsLog{w, start, product(uint64(binary.BigEndian.Uint32(sb[96:])), block) / logBlock} // sb_logblocks
	return l, ok && l.blocks > logRecordMost && start+l.blocks*logBlock <= w.size
}

// read returns blocks from one on, wrapping at the end of the ring; zeros after an error.
func (l xfsLog) read(block, count int64) []byte {
	data := make([]byte, 0, count*logBlock)
	for count > 0 {
		block = (block%l.blocks + l.blocks) % l.blocks
		part := min(count, l.blocks-block)
		data = append(data, l.w.at(l.start+block*logBlock, part*logBlock)...)
		block, count = block+part, count-part
	}
	return append(data, make([]byte, cap(data)-len(data))...)
}

// cycle returns the number of the cycle in which a block was written; 0 for never.
func (l xfsLog) cycle(block int64) uint32 {
	data := l.read(block, 1)
	if first := binary.BigEndian.Uint32(data); first != logMagic {
		return first
	}
	return binary.BigEndian.Uint32(data[4:])
}

// head returns the block after the last one written: the first one whose cycle is that of the last block of the ring.
// After torn writes there may be several, and any of them will do: what is before it then is not the end of a valid
// unmount.
func (l xfsLog) head() int64 {
	last := l.cycle(l.blocks - 1)
	if l.cycle(0) == last {
		return 0
	}
	return int64(sort.Search(int(l.blocks), func(i int) bool { return l.cycle(int64(i)) == last }))
}

// logRecord is one write to the log.
type logRecord struct {
	block  int64 // of its header
	length int64 // blocks, with its header
	header []byte
	ops    []byte
}

// record reads the record whose header is at a block.
func (l xfsLog) record(block int64) (logRecord, bool) {
	header := l.read(block, 1)
	u32 := binary.BigEndian.Uint32
	headers := max(1, (int64(u32(header[320:]))+logHeaderSpan-1)/logHeaderSpan) // h_size
	data := (int64(u32(header[12:])) + logBlock - 1) / logBlock                 // h_len
	if u32(header) != logMagic || headers+data > logRecordMost {
		return logRecord{}, false
	}
	r := logRecord{(block%l.blocks + l.blocks) % l.blocks, headers + data, l.read(block, headers),
		l.read(block+headers, data)}
	for i := range min(data, headers*64) { // The first word of each block is in the header: the cycle is in its place.
		at := i/64*logBlock + i%64*4
		if i < 64 {
			at += 44 // h_cycle_data
		} else {
			at += 4 // xh_cycle_data
		}
		copy(r.ops[i*logBlock:i*logBlock+4], r.header[at:])
	}
	return r, true
}

// clean reports whether there is nothing to replay.
func (l xfsLog) clean() bool {
	if l.cycle(0) == 0 {
		return l.cycle(l.blocks-1) == 0 // never written to
	}
	head := l.head()
	for back := int64(1); back <= logRecordMost; back++ {
		last, ok := l.record(head - back)
		if !ok {
			continue
		}
		return last.length == back && (last.unmount() || l.superblockOnly(last, head))
	}
	return false
}

// unmount reports whether the record is that of an unmount, and so the last one.
func (r logRecord) unmount() bool {
	const flags = 9
	// h_num_logops
	return binary.BigEndian.Uint32(r.header[40:]) == 1 && len(r.ops) > flags && r.ops[flags]&logUnmount != 0
}

// superblockOnly reports whether all records that would be replayed, up to the last, are of the superblock.
func (l xfsLog) superblockOnly(last logRecord, head int64) bool {
	const most = 64                                           // records: a freeze writes two
	block := int64(binary.BigEndian.Uint32(last.header[28:])) // of h_tail_lsn
	for range most {
		r, ok := l.record(block)
		if !ok || !r.superblockOnly() {
			return false
		}
		if block = (block + r.length) % l.blocks; r.block == last.block {
			return block == head%l.blocks
		}
	}
	return false
}

// superblockOnly checks each operation of a record: the beginning and the end of a transaction have no data, its header
// has its magic, and a buffer's place is followed by its contents.
func (r logRecord) superblockOnly() bool {
	const header = 12
	contents := 0 // number of operations that are contents of the superblock's buffer
	at := 0
	for range binary.BigEndian.Uint32(r.header[40:]) { // h_num_logops
		if at+header > len(r.ops) {
			return false
		}
		length := int(binary.BigEndian.Uint32(r.ops[at+4:]))
		data := r.ops[at+header:]
		if length > len(data) {
			return false
		}
		data, at = data[:length], at+header+length
		u16, u32, u64 := binary.NativeEndian.Uint16, binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
		switch {
		case length == 0:
		case contents > 0:
			contents--
		case length == 16 && u32(data) == logTransaction:
		case length >= 16 && u16(data) == logBuffer && u16(data[6:]) == 1 && u64(data[8:]) == 0: // one basic block, the first
			contents = int(u16(data[2:])) - 1
		default:
			return false
		}
	}
	return true
}
