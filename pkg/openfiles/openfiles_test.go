package openfiles

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// boundWord makes the test's program bound its files, and print the bounds of itself and of a program that it runs.
const boundWord = "bound-open-files"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == boundWord {
		tellBound(os.Args[2])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func tellBound(text string) {
	var bound Bound
	if _, err := fmt.Sscan(text, &bound); err != nil {
		fmt.Fprintln(os.Stdout, err)
		return
	}
	if err := bound.Apply(); err != nil {
		fmt.Fprintln(os.Stdout, err)
	}
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		fmt.Fprintln(os.Stdout, err)
	}
	child, err := exec.CommandContext(context.Background(), "sh", "-c", "ulimit -Sn; ulimit -Hn").Output()
	fmt.Fprintln(os.Stdout, own.Cur, own.Max, strings.Fields(string(child)), err)
}

// TestBound checks that the bound applies to the process and its programs, and never raises an existing one.
func TestBound(t *testing.T) {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	for bound, want := range map[uint64]uint64{500: 500, now.Max + 1: now.Max} {
		out, err := exec.CommandContext(t.Context(), "/proc/self/exe", boundWord, fmt.Sprint(bound)).CombinedOutput()
		if got, all := strings.TrimSpace(string(out)),
			fmt.Sprintf("%d %d [%d %d] <nil>", want, want, want, want); err != nil || got != all {
			t.Errorf("with %d: %q, %v; want %q", bound, got, err, all)
		}
	}
}

func TestCheck(t *testing.T) {
	for bound, right := range map[Bound]bool{-1: false, 0: true, 10: false, least: true, Usual: true} {
		if err := bound.Check(); (err == nil) != right {
			t.Errorf("%d: %v", bound, err)
		}
	}
}
