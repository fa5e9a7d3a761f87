package nfsdriver

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/tests/vm/inside"
	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

func TestMain(m *testing.M) {
	nfsd.ElsewhereMain()
	podMain()
	confinedMain()
	os.Exit(inside.Main(m))
}

const (
	// direct is the address of the server, and proxied is the address of the proxy in front of it.
	direct, proxied = "127.0.0.1", "127.0.0.2"
	// short is the time limit of a call while a server does not answer, and long the limit while it answers at all.
	short, long = 5 * time.Second, 30 * time.Second
	// slack is the allowed delay after that limit, with an emulated processor of a busy machine. A call that hangs takes
	// longer.
	slack = 2 * time.Minute
	// pause is the shortest delay before an orchestrator's sidecars retry.
	pause = time.Second
	// patience is the limit of a call while nothing fails, and the limit until it succeeds afterwards.
	patience = 2 * time.Minute
)

// site contains the servers: the one that fails, and another one.
type site struct {
	*testing.T
	server *nfsd.Server
	proxy  *nfsd.Proxy
	other  *nfsd.Elsewhere  // withOther
	small  *nfsd.Filesystem // the exported filesystem
	export nfsd.Export
}

func newSite(t *testing.T, config nfsd.Config) *site {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	s := &site{T: t}
	s.must(nfsd.Clear(ctx))
	path, err := nfsd.Folder()
	s.must(err)
	s.small, err = nfsd.NewFilesystem(ctx, path, "ext4", 64<<20)
	s.must(err)
	t.Cleanup(func() { s.check(s.small.Close()) }) // after the servers, which would keep it in use for a while
	config.Address = direct
	s.server, err = nfsd.Start(ctx, config)
	s.must(err)
	t.Cleanup(func() { s.check(s.server.Stop(ctx)) })
	// The exported folder is below the root of the filesystem, so that it does not exist while that is not mounted.
	s.export = nfsd.Export{Path: path + "/share", Options: []string{"no_root_squash"}, FSID: "77"}
	s.must(s.server.Export(ctx, s.export))
	s.proxy, err = nfsd.NewProxyOn(ctx, proxied+":2049")
	s.must(err)
	t.Cleanup(func() { s.check(s.proxy.Close()) })
	return s
}

// withOther starts the other server.
func (s *site) withOther() *site {
	s.Helper()
	var err error
	s.other, err = nfsd.StartElsewhere(context.WithoutCancel(s.Context()))
	s.must(err)
	s.Cleanup(func() { s.check(s.other.Stop()) })
	return s
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *site) check(err error) {
	s.Helper()
	if err != nil {
		s.Error(err)
	}
}
