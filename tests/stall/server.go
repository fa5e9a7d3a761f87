package stall

import (
	"os"
	"testing"
)

// Server is a filesystem that can be stalled, for a test: its failures fail the test.
type Server struct{ *Process }

// Serve starts a server until the end of the test. It must be called before anything that uses it is set up, so that it
// is killed after that was taken down. A machine has only one at a time: all tests see the same loop devices, and a
// search for one's own devices must also ask a hanging one.
func Serve(t testing.TB) *Server {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: mounting needs root")
	}
	alone(t)
	place := t.TempDir()
	process, err := ServeAt(t.TempDir(), place)
	must(t, err)
	t.Cleanup(func() {
		if err := process.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Server{process}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// StopAt makes the server stop before it answers the n-th request from now.
func (s *Server) StopAt(t testing.TB, request Request, n int) {
	t.Helper()
	must(t, s.Process.StopAt(request, n))
}

// DenyMove makes the server report the n-th move from now as failed, after executing it.
func (s *Server) DenyMove(t testing.TB, n int) {
	t.Helper()
	must(t, s.order(moved, n))
}

// DenySync makes the server report the n-th sync of a directory from now as failed.
func (s *Server) DenySync(t testing.TB, n int) {
	t.Helper()
	must(t, s.order(synced, n))
}

// Requests returns how many requests the server has been sent since it was started.
func (s *Server) Requests(t testing.TB) int {
	t.Helper()
	all, err := s.Process.Requests()
	must(t, err)
	return all
}

// Stop makes the server stop at once.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	must(t, s.Process.Stop())
}

// Stopped reports whether the server has stopped, as of Process.
func (s *Server) Stopped(t testing.TB) bool {
	t.Helper()
	stopped, err := s.Process.Stopped()
	must(t, err)
	return stopped
}

// Continue makes the server answer again, as of Process.
func (s *Server) Continue(t testing.TB) {
	t.Helper()
	must(t, s.Process.Continue())
}
