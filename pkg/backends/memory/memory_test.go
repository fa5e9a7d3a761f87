package memory

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/params"
)

// opened returns a backend with the given capacity in bytes.
func opened(t *testing.T, capacity int64) *backend {
	t.Helper()
	return openedIn(t, t.TempDir(), &Config{CapacityBytes: capacity, Nodes: []string{"b", "c"}, Zone: "z"})
}

func openedIn(t *testing.T, dir string, config any) *backend {
	t.Helper()
	i, err := Definition().Open(t.Context(), optionsFor(dir, config))
	if err != nil {
		t.Fatal(err)
	}
	return i.Controller.(*backend)
}

func optionsFor(dir string, config any) backends.Options {
	return backends.Options{Driver: "d", DataDir: dir, NodeID: "a", Config: config, Log: slog.New(slog.DiscardHandler)}
}

func small(name string) backends.Spec {
	return backends.Spec{Name: name, Capacity: backends.CapacityRange{RequiredBytes: step}, Parameters: &Parameters{}}
}

func created(t *testing.T, b *backend, name string) string {
	t.Helper()
	v, err := b.Create(t.Context(), small(name))
	if err != nil {
		t.Fatal(err)
	}
	return v.Handle
}

func wants(t *testing.T, what string, err error, kind backends.Kind) {
	t.Helper()
	if !backends.Is(err, kind) {
		t.Errorf("%s: got %v, want %v", what, err, kind)
	}
}

func TestParametersAreDecoded(t *testing.T) {
	d := Definition()
	parameters, mutable := d.NewParameters().(*Parameters), d.NewMutable().(*Mutable)
	if err := params.Decode(map[string]string{"tier": "cold", "readAheadKiB": "128"}, parameters, mutable); err != nil {
		t.Fatal(err)
	}
	if parameters.Tier != "cold" || mutable.ReadAheadKiB == nil || *mutable.ReadAheadKiB != 128 {
		t.Errorf("decoded %+v and %+v", parameters, mutable)
	}
	for key, value := range map[string]string{"tier": "warm", "readAheadKiB": "-1", "iops": "5"} {
		err := params.Decode(map[string]string{key: value}, d.NewParameters(), d.NewMutable())
		wants(t, key+"="+value, err, backends.Invalid)
	}
	if err := params.Decode(nil, parameters, mutable); err != nil || parameters.Tier != "hot" ||
		mutable.ReadAheadKiB != nil {
		t.Errorf("decoded from nothing: %+v, %+v, %v", parameters, mutable, err)
	}
}

func TestValuesOfAnotherTypeAreInvalid(t *testing.T) {
	b := opened(t, 1<<30)
	for name, change := range map[string]func(*backends.Spec){
		"another type":    func(s *backends.Spec) { s.Parameters = &Config{} },
		"another mutable": func(s *backends.Spec) { s.Mutable = &Parameters{} },
	} {
		spec := small(name)
		change(&spec)
		_, err := b.Create(t.Context(), spec)
		wants(t, name, err, backends.Invalid)
	}
	_, err := b.Source(t.Context(), backends.Attachment{Handle: created(t, b, "v"), Type: "tape"})
	wants(t, "an access type that does not exist", err, backends.Unsupported)
}

func TestConfigurationIsChecked(t *testing.T) {
	for name, config := range map[string]any{
		"none":                    nil,
		"of another type":         &Parameters{},
		"without room":            &Config{Zone: "z"},
		"with a limit below zero": &Config{CapacityBytes: step, MaxVolumesPerNode: -1, Zone: "z"},
		"without a zone":          &Config{CapacityBytes: step},
	} {
		_, err := Definition().Open(t.Context(), optionsFor(t.TempDir(), config))
		wants(t, "a configuration "+name, err, backends.Invalid)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Definition().Open(t.Context(), optionsFor(file, Definition().NewConfig()))
	wants(t, "a data directory that is a file", err, backends.Unavailable)
}

// TestOpenStartsEmpty checks that Open removes the files of a process that was killed, and no other files.
func TestOpenStartsEmpty(t *testing.T) {
	dir := t.TempDir()
	config := Definition().NewConfig()
	killed := openedIn(t, dir, config)
	handle := created(t, killed, "lost")
	foreign := filepath.Join(dir, "volumes")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	options := optionsFor(dir, config)
	options.Log = slog.New(slog.NewTextHandler(&log, nil))
	i, err := Definition().Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed.files.data(handle)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old volume's files: %v, want none", err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("what is not the backend's own: %v", err)
	}
	if !strings.Contains(log.String(), "count=1") {
		t.Errorf("the log does not say what was removed: %q", &log)
	}
	created(t, i.Controller.(*backend), "new")
	if err := backendtest.Close(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); len(left) != 1 || err != nil {
		t.Errorf("after Close there are %v, %v; want only what is not the backend's own", left, err)
	}
}

func TestRoomRunsOut(t *testing.T) {
	b := opened(t, 3*step)
	one, two := created(t, b, "one"), created(t, b, "two")
	_, err := b.CreateGroup(t.Context(), backends.GroupSpec{Name: "g", Volumes: []string{one, two}})
	wants(t, "a group with room for one snapshot", err, backends.Exhausted)
	s, err := b.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: one})
	if err != nil {
		t.Fatalf("the failed group took room, or keeps its volumes: %v", err)
	}
	_, err = b.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s2", Volume: two})
	wants(t, "a snapshot without room", err, backends.Exhausted)
	_, err = b.Create(t.Context(), small("three"))
	wants(t, "a volume without room", err, backends.Exhausted)
	_, err = b.Expand(t.Context(), one, backends.CapacityRange{RequiredBytes: 2 * step})
	wants(t, "growing without room", err, backends.Exhausted)
	spec := small("larger than everything")
	spec.Capacity.RequiredBytes = 4 * step
	_, err = b.Create(t.Context(), spec)
	wants(t, "a volume larger than everything", err, backends.OutOfRange)
	if err := b.DeleteSnapshot(t.Context(), s.Handle); err != nil {
		t.Fatal(err)
	}
	created(t, b, "three")
}

func TestAttachToSeveralNodes(t *testing.T) {
	for _, row := range []struct {
		first, second backends.AccessMode
		ok            bool
	}{
		{backends.SingleNodeWriter, backends.SingleNodeWriter, false},
		{backends.SingleNodeReaderOnly, backends.SingleNodeReaderOnly, false},
		{backends.MultiNodeMultiWriter, backends.SingleNodeWriter, false},
		{backends.SingleNodeWriter, backends.MultiNodeMultiWriter, false},
		{backends.MultiNodeMultiWriter, backends.MultiNodeMultiWriter, true},
		{backends.MultiNodeReaderOnly, backends.MultiNodeReaderOnly, true},
		{backends.MultiNodeSingleWriter, backends.MultiNodeSingleWriter, false},
		{backends.MultiNodeReaderOnly, backends.MultiNodeSingleWriter, false},
	} {
		b := opened(t, 1<<30)
		handle := created(t, b, "v")
		attach := func(node string, mode backends.AccessMode) error {
			_, err := b.Attach(t.Context(), backends.AttachRequest{
				Handle: handle, Node: node, Access: backends.Access{Modes: []backends.AccessMode{mode}},
			})
			return err
		}
		if err := attach("b", row.first); err != nil {
			t.Fatal(err)
		}
		err := attach("c", row.second)
		if row.ok && err != nil || !row.ok && !backends.Is(err, backends.InUse) {
			t.Errorf("attached as %v and as %v: %v, want success: %t", row.first, row.second, err, row.ok)
		}
	}
}

// TestAttachAgainInAnotherMode attaches to the same node in another mode.
func TestAttachAgainInAnotherMode(t *testing.T) {
	b := opened(t, 1<<30)
	request := backends.AttachRequest{Handle: created(t, b, "v"), Node: "b",
		Access: backends.Access{Modes: []backends.AccessMode{backends.MultiNodeMultiWriter}}}
	for range 2 {
		if _, err := b.Attach(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	request.Access.Modes = []backends.AccessMode{backends.SingleNodeWriter}
	_, err := b.Attach(t.Context(), request)
	wants(t, "Attach in another mode", err, backends.Exists)
}

// TestAControllerOnlyProcessHasNoNode checks that an empty node ID is no node.
func TestAControllerOnlyProcessHasNoNode(t *testing.T) {
	options := optionsFor(t.TempDir(), Definition().NewConfig())
	options.NodeID = ""
	i, err := Definition().Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	b := i.Controller.(*backend)
	_, err = b.Attach(t.Context(), backends.AttachRequest{Handle: created(t, b, "v")})
	wants(t, "attaching to no node", err, backends.NotFound)
}

func TestAMountedVolumeIsNotCopied(t *testing.T) {
	b := opened(t, 1<<30)
	handle := created(t, b, "v")
	source, err := b.Source(t.Context(), backends.Attachment{Handle: handle, Type: backends.Mount})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(source.(backends.Directory).Path); err != nil || !info.IsDir() {
		t.Errorf("the source is %+v: %v", source, err)
	}
	_, err = b.Clone(t.Context(), small("clone"), handle)
	wants(t, "cloning", err, backends.InUse)
	_, err = b.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: handle})
	wants(t, "taking a snapshot", err, backends.InUse)
	_, err = b.CreateGroup(t.Context(), backends.GroupSpec{Name: "g", Volumes: []string{created(t, b, "w"), handle}})
	wants(t, "taking a group", err, backends.InUse)
	if err := b.Release(t.Context(), handle); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Clone(t.Context(), small("clone"), handle); err != nil {
		t.Errorf("cloning after Release: %v", err)
	}
}

// TestWhatIsBusy tests a volume and a snapshot that are being copied, and ones that are being removed.
func TestWhatIsBusy(t *testing.T) {
	b := opened(t, 1<<30)
	handle := created(t, b, "v")
	s, err := b.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: handle})
	if err != nil {
		t.Fatal(err)
	}
	g, err := b.CreateGroup(t.Context(), backends.GroupSpec{Name: "g", Volumes: []string{handle}})
	if err != nil {
		t.Fatal(err)
	}
	v, taken, member := b.volumes.rows[handle].value, b.snapshots.rows[s.Handle].value,
		b.groups.rows[g.Handle].value.members[0]
	for _, busy := range []struct {
		state string
		hold  hold
	}{{"copied", hold{readers: 1}}, {"removed", hold{removing: true}}} { // the steps below test the last state
		state, h := busy.state, busy.hold
		v.hold, taken.hold, member.hold = h, h, h
		_, err = b.Source(t.Context(), backends.Attachment{Handle: handle, Type: backends.Mount})
		wants(t, "Source while it is being "+state, err, backends.Busy)
		_, err = b.Expand(t.Context(), handle, backends.CapacityRange{RequiredBytes: 2 * step})
		wants(t, "Expand while it is being "+state, err, backends.Busy)
		wants(t, "Delete while it is being "+state, b.Delete(t.Context(), handle), backends.Busy)
		wants(t, "DeleteSnapshot while it is being "+state, b.DeleteSnapshot(t.Context(), s.Handle), backends.Busy)
		wants(t, "DeleteGroup while it is being "+state, b.DeleteGroup(t.Context(), g.Handle), backends.Busy)
	}
	_, err = b.Attach(t.Context(), backends.AttachRequest{Handle: handle, Node: "a"})
	wants(t, "Attach while it is being removed", err, backends.Busy)
	_, err = b.Clone(t.Context(), small("clone"), handle)
	wants(t, "Clone while it is being removed", err, backends.Busy)
	_, err = b.Restore(t.Context(), small("restored"), s.Handle)
	wants(t, "Restore while it is being removed", err, backends.Busy)
	v.hold, taken.hold, member.hold = hold{}, hold{}, hold{}
	b.volumes.names["half"] = "volume-that-is-being-made"
	_, err = b.Create(t.Context(), small("half"))
	wants(t, "Create while it is being made", err, backends.Busy)
}

func TestAPlaceThatIsNotHereHasNoSnapshots(t *testing.T) {
	b := opened(t, 1<<30)
	_, err := b.CreateSnapshot(t.Context(), backends.SnapshotSpec{
		Name: "s", Volume: created(t, b, "v"),
		Topology: backends.TopologyRequirement{Requisite: []backends.Topology{{"d/zone": "elsewhere"}}},
	})
	wants(t, "a snapshot elsewhere", err, backends.Exhausted)
}

func TestMissingFilesAreSeen(t *testing.T) {
	b := opened(t, 1<<30)
	handle := created(t, b, "v")
	if err := os.RemoveAll(b.files.root); err != nil {
		t.Fatal(err)
	}
	if issues, err := b.Inspect(t.Context()); len(issues) != 1 || !issues[0].Unreachable || err != nil {
		t.Errorf("the storage has the issues %+v, %v; want one, unreachable", issues, err)
	}
	if issues, err := b.Health(t.Context(), handle); len(issues) != 1 || issues[0].Status != backends.DataLoss ||
		err != nil {
		t.Errorf("the volume has the issues %+v, %v; want a loss of data", issues, err)
	}
	_, err := b.Source(t.Context(), backends.Attachment{Handle: handle, Type: backends.Block})
	wants(t, "Source", err, backends.Unavailable)
	_, err = b.Expand(t.Context(), handle, backends.CapacityRange{RequiredBytes: 2 * step})
	wants(t, "Expand", err, backends.Unavailable)
	_, err = b.Create(t.Context(), small("w"))
	wants(t, "Create", err, backends.Unavailable)
	if err := b.Delete(t.Context(), handle); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if b.used != 0 || len(b.volumes.names) != 0 {
		t.Errorf("%d bytes and the names %v are still taken", b.used, b.volumes.names)
	}
}

func TestFailureHasTheRightKind(t *testing.T) {
	for _, row := range []struct {
		err  error
		want backends.Kind
	}{
		{syscall.ENOSPC, backends.Exhausted},
		{syscall.EDQUOT, backends.Exhausted},
		{&os.PathError{Op: "truncate", Path: "image", Err: syscall.EFBIG}, backends.OutOfRange},
		{syscall.EIO, backends.Unavailable},
		{fs.ErrNotExist, backends.Unavailable},
	} {
		err := failure("something failed", row.err)
		wants(t, fmt.Sprint(row.err), err, row.want)
		if !errors.Is(err, row.err) {
			t.Errorf("%v does not wrap its cause", err)
		}
	}
	if err := failure("nothing failed", nil); err != nil {
		t.Errorf("no failure became %v", err)
	}
}
