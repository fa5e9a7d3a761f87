package nfsdriver

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/tests/inprocess"
	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

// keyAfterSquash has a controller that may not read the share's key at first. It must not go on without: the next controller would
// not find what it made, because the key makes IDs of names.
func (s *site) keyAfterSquash(ctx context.Context) {
	first := inprocess.Start(s, inprocess.Options{Backend: "nfs"})
	s.must(newLife(s.T, first.Conn, "first", direct, s.export.Path).do(ctx, "create")) // It makes the key.
	s.must(exported(func(e *nfsd.Export) { e.Options = []string{"root_squash"} })(ctx, s))
	second := inprocess.Start(s, inprocess.Options{Backend: "nfs"})
	made := newLife(s.T, second.Conn, "second", direct, s.export.Path)
	if err := made.do(ctx, "create"); status.Code(err) != codes.PermissionDenied {
		s.Errorf("without the key: %v, want PermissionDenied", err)
	}
	s.must(asOnce(ctx, s))
	s.eventually(ctx, made, "create")
	third := inprocess.Start(s, inprocess.Options{Backend: "nfs"})
	for _, name := range []string{"first", "second"} {
		found := newLife(s.T, third.Conn, name, direct, s.export.Path)
		s.must(found.do(ctx, "create"))
		if name == made.name && found.id != made.id {
			s.Errorf("the next controller gives %q the ID %s, and it was made with %s", name, found.id, made.id)
		}
		s.must(found.do(ctx, "delete"))
	}
}
