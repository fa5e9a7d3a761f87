package driver

import (
	"google.golang.org/protobuf/proto"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// mostEntries is the maximum number of entries in a page, also if all are requested (as csi-attacher does).
const mostEntries = 500

// mostBytes is the maximum size of a page: a client accepts messages of up to 4 MiB, gRPC's default. A usual entry has
// some hundred bytes. An entry with a full volume context, many nodes or many health messages has many more.
const mostBytes = 3 << 20

// page checks the limit of an enumeration's page, and sets the default.
func page(limit int32, token string) (backends.Page, error) {
	if limit < 0 {
		return backends.Page{}, backends.Errorf(backends.Invalid, "max_entries is %d: it must not be negative", limit)
	}
	if limit == 0 {
		limit = mostEntries
	}
	return backends.Page{Limit: min(int(limit), mostEntries), Token: token}, nil
}

// paged answers a request for a page with the result of list. It returns fewer entries than requested if these are too
// large for a message. A token can be used again, so the next page begins after the last returned entry.
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
