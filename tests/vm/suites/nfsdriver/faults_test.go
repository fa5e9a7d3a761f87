package nfsdriver

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

// fault is a way in which a server fails.
type fault struct {
	name  string
	calls []string      // the calls made during the failure
	full  []string      // more calls, with -full
	via   string        // the server's address, for clients
	limit time.Duration // of each call
	begin func(ctx context.Context, s *site) error
	end   func(ctx context.Context, s *site) error
	// want contains the allowed codes of calls; the default is those of away.
	want map[string][]codes.Code
}

// away returns the allowed codes while a server does not answer. Calls that need no server succeed, and unstaging may.
func away(call string) []codes.Code {
	switch call {
	case "unpublish":
		return []codes.Code{codes.OK}
	case "publish", "unstage":
		return []codes.Code{codes.OK, codes.Unavailable, codes.DeadlineExceeded}
	}
	return []codes.Code{codes.Unavailable, codes.DeadlineExceeded}
}

func (f fault) allows(call string, code codes.Code) bool {
	want := f.want[call]
	if want == nil {
		want = away(call)
	}
	return slices.Contains(want, code)
}

func kill(ctx context.Context, s *site) error   { return s.server.Kill(ctx) }
func resume(ctx context.Context, s *site) error { return s.server.Resume(ctx) }

func block(how nfsd.How) func(context.Context, *site) error {
	return func(ctx context.Context, _ *site) error { return nfsd.Block(ctx, how) }
}
func unblock(ctx context.Context, _ *site) error { return nfsd.Unblock(ctx) }

// exported changes the export, and asOnce restores it.
func exported(change func(e *nfsd.Export)) func(context.Context, *site) error {
	return func(ctx context.Context, s *site) error {
		e := s.export
		change(&e)
		return s.server.Export(ctx, e)
	}
}

func asOnce(ctx context.Context, s *site) error { return s.server.Export(ctx, s.export) }

func delay(d time.Duration) func(context.Context, *site) error {
	return func(_ context.Context, s *site) error { s.proxy.Delay(d); return nil }
}

// another replaces the exported folder with an empty one: the disk behind it is not mounted. For the server it is the
// same export.
func another(ctx context.Context, s *site) error {
	err := errors.Join(os.Mkdir(s.away(), 0o755), unix.Mount(s.small.Path, s.away(), "", unix.MS_MOVE, ""))
	if err != nil {
		return err
	}
	return s.server.Export(ctx, s.export)
}

func back(ctx context.Context, s *site) error {
	if err := os.Remove(s.export.Path); err != nil { // It is still empty: the driver did not take it for the share.
		return err
	}
	if err := errors.Join(unix.Mount(s.away(), s.small.Path, "", unix.MS_MOVE, ""), os.Remove(s.away())); err != nil {
		return err
	}
	return s.server.Export(ctx, s.export)
}

// away is the temporary mount point of the disk.
func (s *site) away() string { return s.small.Path + ".away" }

func faults() []fault {
	away, wrong := awayFaults(), wrongFaults()
	for i := range away {
		away[i].limit = short
	}
	for i := range wrong {
		wrong[i].limit = long
	}
	return append(away, wrong...)
}

// awayFaults returns the faults of servers that do not answer.
func awayFaults() []fault {
	return []fault{
		{name: "killed", calls: steps(), via: direct, begin: kill, end: resume},
		{name: "packets dropped", calls: []string{"create", "unstage"}, full: []string{"stage", "stats", "delete"},
			via: direct, begin: block(nfsd.Drop), end: unblock},
		{name: "packets refused", calls: []string{"stage"}, full: []string{"create", "unstage"}, via: direct,
			begin: block(nfsd.Reset), end: unblock},
		{
			name: "slow, 2s each way", calls: []string{"create"}, full: []string{"stage", "delete"}, via: proxied,
			begin: delay(2 * time.Second), end: delay(0),
		},
		{
			name: "paused", calls: []string{"delete"}, full: []string{"create", "stats"}, via: proxied,
			begin: func(_ context.Context, s *site) error { s.proxy.Pause(); return nil },
			end:   func(_ context.Context, s *site) error { s.proxy.Continue(); return nil },
		},
	}
}

// wrongFaults returns the faults of servers that answer incorrectly.
func wrongFaults() []fault {
	ok, late := codes.OK, []codes.Code{codes.Unavailable, codes.DeadlineExceeded}
	return []fault{
		{
			name: "connections cut", calls: []string{"delete"}, full: []string{"create"}, via: proxied,
			begin: func(_ context.Context, s *site) error { s.proxy.Cut(); return nil },
			end:   func(context.Context, *site) error { return nil },
			want:  map[string][]codes.Code{"create": {codes.OK, codes.Unavailable}, "delete": {codes.OK, codes.Unavailable}},
		},
		{
			name: "read-only export", calls: []string{"create", "delete"}, full: []string{"stage"}, via: direct, end: asOnce,
			begin: exported(func(e *nfsd.Export) { e.Options = []string{"ro", "no_root_squash"} }),
			want:  map[string][]codes.Code{"create": {codes.Unavailable}, "delete": {codes.Unavailable}, "stage": {ok}},
		},
		{
			name: "full", calls: []string{"create", "delete"}, via: direct,
			begin: func(_ context.Context, s *site) error { return s.small.Fill() },
			end:   func(_ context.Context, s *site) error { return s.small.Empty() },
			want:  map[string][]codes.Code{"create": {codes.ResourceExhausted}, "delete": {ok}},
		},
		{
			name: "root squashed", calls: []string{"delete"}, full: []string{"create", "stage"}, via: direct, end: asOnce,
			begin: exported(func(e *nfsd.Export) { e.Options = []string{"root_squash"} }),
			want:  map[string][]codes.Code{"create": {codes.Unavailable}, "delete": {codes.PermissionDenied}, "stage": {ok}},
		},
		{
			name: "another folder there", calls: []string{"stage", "delete"}, via: direct, begin: another, end: back,
			want: map[string][]codes.Code{"stage": late, "delete": late},
		},
		{
			name: "not exported", calls: []string{"create", "unstage"}, full: []string{"stage", "stats", "delete"}, via: direct,
			end:   asOnce,
			begin: func(ctx context.Context, s *site) error { return s.server.Unexport(ctx, s.export) },
		},
		{
			name: "stale handles", calls: []string{"stage", "stats"}, full: []string{"create", "unstage", "delete"}, via: direct,
			end:   asOnce,
			begin: exported(func(e *nfsd.Export) { e.FSID = "78" }),
			want: map[string][]codes.Code{"create": {ok}, "stage": {ok}, "stats": append(late, ok), "unstage": {ok},
				"delete": {ok}},
		},
	}
}
