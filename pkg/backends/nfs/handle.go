package nfs

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/base64url"
)

// kind is a kind of item with a handle.
type kind string

const (
	volumeKind   kind = "volume"
	snapshotKind kind = "snapshot"
	groupKind    kind = "group"
)

// prefix begins a handle. It shows people the kind of a handle, and distinguishes the tokens of one enumeration from
// another's.
func (k kind) prefix() string {
	switch k {
	case snapshotKind:
		return "ns1."
	case groupKind:
		return "ng1."
	case volumeKind:
	}
	return "nv1."
}

// handle identifies an item and its share. Nothing in it is trusted: the share must have the identity, and a record
// with the ID, which cannot be guessed.
type handle struct {
	kind    kind
	address export.Address
	share   string // the name of a share of the configuration; empty for an address
	home    [6]byte
	id      string // 32 hexadecimal digits
}

// The parts of a handle: one byte for the version, the home, the ID, and a checksum. The checksum distinguishes a
// handle that was never returned from one of a server that cannot be asked.
const (
	homeAt    = 1
	idAt      = homeAt + 6
	sumAt     = idAt + 16
	coded     = sumAt + 4
	maxHandle = 128 // CSI, "Size Limits"
)

// where names the share in a handle.
func (h handle) where() string {
	if h.share != "" {
		return "@" + h.share
	}
	return h.address.String()
}

// encode returns the text of a handle. Kinds: Invalid when it is too long.
func (h handle) encode() (string, error) {
	id, err := hex.DecodeString(h.id)
	if err != nil || len(id) != sumAt-idAt {
		return "", backends.Errorf(backends.Unknown, "%q is no ID", h.id)
	}
	data := append([]byte{byte(1 + slices.Index(export.Versions(), h.address.Version))}, h.home[:]...)
	data = append(data, id...)
	data = append(data, sum(h.kind, data, h.where())...)
	text := h.kind.prefix() + base64url.Encode(data) + "." + h.where()
	if len(text) > maxHandle {
		return "", backends.Errorf(backends.Invalid,
			"server and share have %d bytes, and a volume's handle has room for %d: give the share a name in the driver's "+
				"configuration, and name it in the class parameter shareName",
			len(h.where()), maxHandle-len(text)+len(h.where()))
	}
	return text, nil
}

func sum(k kind, data []byte, where string) []byte {
	all := sha256.Sum256(slices.Concat([]byte(k.prefix()), data, []byte(where)))
	return all[:coded-sumAt]
}

// shareName returns the name of the configuration's share in a handle that encode made; empty for an address.
func shareName(text string) string {
	const parts = 3
	if split := strings.SplitN(text, ".", parts); len(split) == parts && strings.HasPrefix(split[parts-1], "@") {
		return split[parts-1][1:]
	}
	return ""
}

// parse parses a handle. Kinds: NotFound for a text that encode never made; Unavailable for a share that is not
// configured.
func (e *engine) parse(k kind, text string) (handle, error) {
	h, where, version, ok := decodeHandle(k, text)
	if !ok {
		return h, backends.Errorf(backends.NotFound, "there is no such %s", k)
	}
	return h, e.locate(&h, where, version)
}

// decodeHandle decodes a handle independently of the current names of shares: it returns the address only as text, and
// the version's number.
func decodeHandle(k kind, text string) (h handle, where string, version int, ok bool) {
	rest, ours := strings.CutPrefix(text, k.prefix())
	code, where, found := strings.Cut(rest, ".")
	data, err := base64url.Decode(code)
	if !ours || !found || len(text) > maxHandle || err != nil || len(data) != coded ||
		int(data[0]) > len(export.Versions()) || !slices.Equal(data[sumAt:], sum(k, data[:sumAt], where)) {
		return handle{kind: k}, "", 0, false
	}
	return handle{kind: k, home: [6]byte(data[homeAt:idAt]), id: hex.EncodeToString(data[idAt:sumAt])}, where,
		int(data[0]), true
}

// locate finds the share in a handle. Kinds: as parse; Unavailable for a share that is not configured; Denied when it
// may not be used.
func (e *engine) locate(h *handle, where string, version int) (err error) {
	if name, named := strings.CutPrefix(where, "@"); named {
		h.share = name
		h.address, err = e.shareNamed(name)
		return err
	}
	host, path, _ := strings.Cut(where, ":/")
	if h.address, err = export.Parse(host, "/"+path, ""); err != nil || h.address.String() != where {
		return backends.Errorf(backends.NotFound, "there is no such %s", h.kind)
	}
	if version > 0 {
		h.address.Version = export.Versions()[version-1]
	}
	return e.allow(h.address, export.Address.Same)
}
