package node_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
)

// newMeasured returns a world in which volumes are recorded as staged from devices, and its log.
func newMeasured(t *testing.T, volumes ...string) (*world, *bytes.Buffer) {
	t.Helper()
	w, log := newWorld(t), &bytes.Buffer{}
	w.log = slog.New(slog.NewTextHandler(log, nil))
	records := w.records()
	for _, volume := range volumes {
		w.must(records.Put(ledger.Record{Volume: volume, Staged: &ledger.Staging{Path: w.path("at", volume),
			Source: ledger.Source{Kind: ledger.Device, Path: "/dev/" + volume, DevicePath: "/dev/" + volume}}}))
	}
	w.restart()
	w.shelf.measure = func(_, device string) ([]backends.Measurement, error) {
		return []backends.Measurement{{Name: device}}, nil
	}
	return w, log
}

// measured returns the volumes that are measured.
func (w *world) measured(ctx context.Context) (volumes []string) {
	w.Helper()
	for _, m := range w.service.Measure(ctx) {
		if len(m.Values) != 1 || m.Values[0].Name != "/dev/"+m.Volume {
			w.Errorf("volume %s is measured as %+v", m.Volume, m.Values)
		}
		volumes = append(volumes, m.Volume)
	}
	return volumes
}

func TestMeasureStagedDevices(t *testing.T) {
	w, _ := newMeasured(t, "b", "a")
	records := w.records()
	for volume, source := range map[string]ledger.Source{
		"image":     {Kind: ledger.Device, Image: true, DevicePath: "/dev/loop1"},
		"directory": {Kind: ledger.Directory, Path: "/pool/a"},
	} {
		w.must(records.Put(ledger.Record{Volume: volume, Staged: &ledger.Staging{Path: w.path("at", volume),
			Source: source}}))
	}
	w.must(records.Put(ledger.Record{Volume: "pending", Staged: &ledger.Staging{Path: w.path("at", "pending"),
		Pending: true, Source: ledger.Source{Kind: ledger.Device, DevicePath: "/dev/pending"}}}))
	w.restart()
	if got := w.measured(w.context()); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("measured %q, want a and b", got)
	}
}

// TestMeasureFailureIsToldOnce makes a volume fail twice and then succeed. The other volume is measured throughout.
func TestMeasureFailureIsToldOnce(t *testing.T) {
	w, log := newMeasured(t, "a", "b")
	good := w.shelf.measure
	w.shelf.measure = func(handle, device string) ([]backends.Measurement, error) {
		if handle == "a" {
			return nil, backends.Errorf(backends.Unavailable, "no EBS here")
		}
		return good(handle, device)
	}
	for range 2 {
		if got := w.measured(w.context()); !slices.Equal(got, []string{"b"}) {
			t.Errorf("measured %q, want b", got)
		}
	}
	if got := strings.Count(log.String(), "no EBS here"); got != 1 {
		t.Errorf("the failure is logged %d times:\n%s", got, log)
	}
	w.shelf.measure = good
	for range 2 {
		if got := w.measured(w.context()); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("measured %q afterwards, want a and b", got)
		}
	}
	if got := strings.Count(log.String(), "measured again"); got != 1 {
		t.Errorf("the recovery is logged %d times:\n%s", got, log)
	}
}

// TestMeasureHangs makes a device hang. Measure returns at the end of its time. From then on the volume is left out
// without a further call, and without a delay for the others, until the call has returned.
func TestMeasureHangs(t *testing.T) {
	w, log := newMeasured(t, "a", "b")
	ctx, end := context.WithCancel(w.context())
	good, answer := w.shelf.measure, make(chan struct{})
	calls := 0
	w.shelf.measure = func(handle, device string) ([]backends.Measurement, error) {
		if handle == "a" {
			calls++
			end()
			<-answer
		}
		return good(handle, device)
	}
	done := make(chan error, 1)
	go func() {
		w.service.Measure(ctx)
		done <- nil
	}()
	w.must(w.returned(done))
	for range 2 {
		if got := w.measured(w.context()); !slices.Equal(got, []string{"b"}) {
			t.Errorf("measured %q beside a device that hangs, want b", got)
		}
	}
	if calls != 1 || w.service.GivenUp() != 1 || strings.Count(log.String(), "was given up") != 1 {
		t.Errorf("%d calls, %d given up, the log:\n%s", calls, w.service.GivenUp(), log)
	}
	close(answer)
	if !eventually(func() bool { return w.service.GivenUp() == 0 }) {
		t.Fatal("the call does not come back")
	}
	if got := w.measured(w.context()); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("measured %q after the device has answered, want a and b", got)
	}
}
