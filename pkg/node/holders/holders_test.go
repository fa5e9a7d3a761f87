package holders_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/node/holders"
	"github.com/stowage-csi/stowage/tests/mountns"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "-map" {
		mapFile(os.Args[2])
		return
	}
	os.Exit(mountns.IsolateInMemory(m.Run))
}

// mapFile keeps a file mapped, and not open, until its standard input ends.
func mapFile(path string) {
	file, err := os.Open(path)
	if err == nil {
		_, err = unix.Mmap(int(file.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
		_ = file.Close()
	}
	if err == nil {
		_, _ = os.Stdout.WriteString("ready\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}

// mounted mounts a tmpfs until the test ends.
func mounted(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a place")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("holders", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }) // some tests have unmounted it already
	if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// start runs a program that says "ready" and ends with its standard input, which closes at the end of the test.
func start(t *testing.T, dir string, argv ...string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // its exit status does not matter
		cancel()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%v says %q, %v", argv, line, err)
	}
	return cmd.Process.Pid
}

func subject(t *testing.T, path string) holders.Subject {
	t.Helper()
	s, ok := holders.OfMount(path)
	if !ok {
		t.Fatalf("nothing is mounted at %s", path)
	}
	return s
}

func TestOf(t *testing.T) {
	const wait = "echo ready; read line"
	for name, test := range map[string]struct {
		begin func(t *testing.T, dir string) (pid int)
		use   string
	}{
		"open file": {func(t *testing.T, dir string) int {
			return start(t, "/", "/bin/sh", "-c", "exec 3<\"$0\"; "+wait, dir+"/file")
		}, "has DIR/file open"},
		"deleted file": {func(t *testing.T, dir string) int {
			return start(t, "/", "/bin/sh", "-c", "exec 3<\"$0\"; rm \"$0\"; "+wait, dir+"/file")
		}, "has DIR/file (deleted) open"},
		"working directory": {func(t *testing.T, dir string) int {
			return start(t, dir, "/bin/sh", "-c", wait)
		}, "works in DIR"},
		"memory": {func(t *testing.T, dir string) int {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			return start(t, "/", self, "-map", dir+"/file")
		}, "has DIR/file in memory"},
		"another mount namespace": {func(t *testing.T, _ string) int {
			return start(t, "/", "unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", wait)
		}, "has it mounted at DIR in another mount namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := mounted(t)
			pid := test.begin(t, dir)
			use := strings.ReplaceAll(test.use, "DIR", dir)
			found := holders.Of(t.Context(), subject(t, dir))
			if len(found.Holders) != 1 || found.Holders[0].PID != pid || found.Holders[0].Use != use {
				t.Errorf("found %s, want process %d that %s", found, pid, use)
			}
			if said := found.String(); !strings.Contains(said, "process "+strconv.Itoa(pid)) || !strings.Contains(said, use) {
				t.Errorf("it says %q", said)
			}
		})
	}
}

// A filesystem that was unmounted here is found by its number in the namespace that has kept it.
func TestOfWhatIsUnmountedHere(t *testing.T) {
	dir := mounted(t)
	s := subject(t, dir)
	pid := start(t, "/", "unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", "echo ready; read line")
	if err := unix.Unmount(dir, 0); err != nil {
		t.Fatal(err)
	}
	if _, still := holders.OfMount(dir); still {
		t.Errorf("something is mounted at %s", dir)
	}
	found := holders.Of(t.Context(), holders.OfDevice("", s.Major, s.Minor))
	if len(found.Holders) != 1 || found.Holders[0].PID != pid {
		t.Errorf("found %s, want process %d", found, pid)
	}
}

// Several devices are one subject.
func TestOfSeveral(t *testing.T) {
	dir := mounted(t)
	s := subject(t, dir)
	pid := start(t, dir, "/bin/sh", "-c", "echo ready; read line")
	several := holders.Subject{Major: s.Major, Minor: s.Minor + 1000, Root: "/", At: dir,
		Others: []uint64{unix.Mkdev(s.Major, s.Minor+2000), unix.Mkdev(s.Major, s.Minor)}}
	if found := holders.Of(t.Context(), several); len(found.Holders) != 1 || found.Holders[0].PID != pid {
		t.Errorf("found %s, want process %d", found, pid)
	}
}

func TestMountBelow(t *testing.T) {
	dir := mounted(t)
	below := filepath.Join(dir, "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("below", below, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(below, 0) }) // fails only with the test
	found := holders.Of(t.Context(), subject(t, dir))
	if found.String() != "there is a mount below it at "+below {
		t.Errorf("it says %q", found)
	}
}

// The users of a bind-mounted directory do not include those of the rest of its filesystem.
func TestPartOfAFilesystem(t *testing.T) {
	dir := mounted(t)
	part, other := filepath.Join(dir, "part"), filepath.Join(dir, "other")
	target := t.TempDir()
	for _, d := range []string{part, other} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount(part, target, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) }) // gone with the namespace otherwise
	s := subject(t, target)
	if s.Root != "/part" {
		t.Errorf("the subject is %+v", s)
	}
	start(t, other, "/bin/sh", "-c", "echo ready; read line")
	if found := holders.Of(t.Context(), s); len(found.Holders) != 0 || !strings.Contains(found.String(), "uses it") {
		t.Errorf("found %s", found)
	}
	pid := start(t, target, "/bin/sh", "-c", "echo ready; read line")
	if found := holders.Of(t.Context(), s); len(found.Holders) != 1 || found.Holders[0].PID != pid {
		t.Errorf("found %s, want process %d", found, pid)
	}
}

func TestManyHolders(t *testing.T) {
	found := holders.Found{}
	for pid := range 8 {
		found.Holders = append(found.Holders, holders.Holder{PID: pid + 1, Command: "sh", Use: "works in /x"})
	}
	if said := found.String(); strings.Count(said, "process") != 5 || !strings.HasSuffix(said, "and 3 more") {
		t.Errorf("it says %q", said)
	}
}

func TestSearchEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if found := holders.Of(ctx, subject(t, mounted(t))); !found.Partial {
		t.Error("a search that was cut short claims to be whole")
	}
}
