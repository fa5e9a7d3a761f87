package layout

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestNew(t *testing.T) {
	for _, data := range []string{"/", "/var", "/./tmp"} {
		if l, err := New(data); err == nil {
			t.Errorf("%s is taken for a cluster's data: %s", data, l.Data())
		}
	}
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "data"), 0o755), os.Symlink("data", link)); err != nil {
		t.Fatal(err)
	}
	one, err := New(link)
	if err != nil {
		t.Fatal(err)
	}
	two, err := New(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	if one.Cgroup() != two.Cgroup() || !strings.HasPrefix(one.Cgroup(), "stowage-cluster-") {
		t.Errorf("one folder has the groups %s and %s", one.Cgroup(), two.Cgroup())
	}
}

func TestDescription(t *testing.T) {
	l, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if l.Exists() {
		t.Error("an empty folder is taken for a cluster's data")
	}
	want := Description{Nodes: 2, Port: 1234, Store: "/store", Version: "v1", Images: []string{"a", "b"}}
	if err := l.Describe(want); err != nil {
		t.Fatal(err)
	}
	got, err := l.Description()
	if err != nil || got.Nodes != want.Nodes || got.Port != want.Port || len(got.Images) != 2 || !l.Exists() {
		t.Errorf("the description is %+v (%v), not %+v", got, err, want)
	}
}

// TestRunning distinguishes a running process from one that does not exist, one that has ended, and a later one with
// the same ID.
func TestRunning(t *testing.T) {
	l, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	running := func() bool {
		t.Helper()
		_, running, err := l.Running()
		if err != nil {
			t.Fatal(err)
		}
		return running
	}
	if running() {
		t.Error("no process was recorded, and it runs")
	}
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := l.RecordProcess(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if p, is, err := l.Running(); err != nil || !is || p.PID != cmd.Process.Pid {
		t.Errorf("the process is %+v, running: %v (%v)", p, is, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // It was killed.
	if running() {
		t.Error("the process has ended, and it runs")
	}
	if err := l.RecordProcess(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(l.Path(processFile), []byte(`{"PID":1,"Started":1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if running() {
		t.Error("a process that started at another time is taken for the recorded one")
	}
}
