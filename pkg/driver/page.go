package driver

import (
	"google.golang.org/protobuf/proto"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// mostEntries is how many entries a page has at most, also when all are asked for (csi-attacher does).
const mostEntries = 500

// mostBytes is how much a page weighs at most: a client takes messages of up to 4 MiB, gRPC's default. A usual entry
// has some hundred bytes; one with a full volume context, many nodes or a long story of what is wrong has many more.
const mostBytes = 3 << 20

// page checks where an enumeration is to go on.
func page(limit int32, token string) (backends.Page, error) {
	if limit < 0 {
		return backends.Page{}, backends.Errorf(backends.Invalid, "max_entries is %d: it must not be negative", limit)
	}
	if limit == 0 {
		limit = mostEntries
	}
	return backends.Page{Limit: min(int(limit), mostEntries), Token: token}, nil
}

// paged answers a request for a page with what list makes of it: with fewer entries than were asked for when these are
// too heavy for a message. A token can be used again, so that the next page goes on after the last entry that is sent.
func paged[R proto.Message](limit int32, token string, list func(backends.Page) (R, error)) (R, error) {
	where, err := page(limit, token)
	if err != nil {
		return *new(R), err
	}
	for ; ; where.Limit /= 2 {
		response, err := list(where)
		if err != nil || where.Limit == 1 || proto.Size(response) <= mostBytes {
			return response, err
		}
	}
}
