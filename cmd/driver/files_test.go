package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// boundWord makes the test's program bound its files, and tell what it and a program that it runs have then.
const boundWord = "bound-open-files"

// boundMain is for the begin of TestMain: in the program that bounds its files it does not return.
func boundMain() {
	if len(os.Args) == 3 && os.Args[1] == boundWord {
		tellBound(os.Args[2])
		os.Exit(0)
	}
}

func tellBound(text string) {
	var bound uint64
	if _, err := fmt.Sscan(text, &bound); err != nil {
		fmt.Println(err)
		return
	}
	if err := limitFiles(bound); err != nil {
		fmt.Println(err)
	}
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		fmt.Println(err)
	}
	child, err := exec.CommandContext(context.Background(), "sh", "-c", "ulimit -Sn; ulimit -Hn").Output()
	fmt.Println(own.Cur, own.Max, strings.Fields(string(child)), err)
}

// TestMaxOpenFiles checks that the bound holds for the process and for what it runs, and never raises one that is
// there.
func TestMaxOpenFiles(t *testing.T) {
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
	refused(t, "--max-open-files is -1", "standalone", "--max-open-files=-1", "--data-dir="+t.TempDir())
	refused(t, "--max-open-files is 10", "controller", "--max-open-files=10", "--data-dir="+t.TempDir())
}
