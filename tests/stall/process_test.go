package stall

import (
	"errors"
	"os/exec"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"
)

// A server confirms that it will stop at a request before the request can come.
func TestSaysSoBeforeItStops(t *testing.T) {
	server := &trap{}
	server.set(Read, 1, writer(func(answer []byte) {
		if server.mu.TryLock() {
			server.mu.Unlock()
			t.Errorf("a request can pass before it says %q", answer)
		}
	}))
	if server.request != Read || server.left != 1 {
		t.Errorf("it stops at %d more %s, want one READ", server.left, server.request)
	}
}

type writer func(text []byte)

func (w writer) Write(text []byte) (int, error) {
	w(text)
	return len(text), nil
}

// A server that does not answer is killed, so that no call hangs for ever.
func TestSilentServerIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Process{cmd: exec.CommandContext(t.Context(), "sleep", "20"), answers: make(chan string)}
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := p.hear("set", nothing); err == nil {
			t.Error("it is said to have answered")
		}
		if err := p.cmd.Wait(); err == nil {
			t.Error("it was not killed")
		}
	})
}

// A caller that waits until a server has stopped learns that it has ended, even before the server is waited for.
func TestEndedServerDoesNotStop(t *testing.T) {
	p := &Process{cmd: exec.CommandContext(t.Context(), "sleep", "1000")}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // before it is waited for, and after
		if stopped, err := p.Stopped(); !errors.Is(err, errEnded) {
			t.Errorf("it has stopped: %t (%v), want that it has ended", stopped, err)
		}
		_ = p.cmd.Wait() // It was killed.
	}
}
