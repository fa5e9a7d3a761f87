package crash

import (
	"crypto/sha256"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/tests/orchestrator"
)

// TestVerifyFindsDamage proves that the crash test would detect a loss.
func TestVerifyFindsDamage(t *testing.T) {
	tests := []struct {
		name   string
		damage func(t *testing.T, dir string)
		want   string // part of the error; empty for none
	}{
		{"none", func(*testing.T, string) {}, ""},
		{"a file is lost", func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "000"))) }, "WRONG FILES"},
		{"a file is empty", func(t *testing.T, dir string) { must(t, os.Truncate(filepath.Join(dir, "000"), 0)) },
			"WRONG DATA"},
		{"a byte is wrong", func(t *testing.T, dir string) {
			path := filepath.Join(dir, "001")
			data, err := os.ReadFile(path)
			must(t, err)
			data[len(data)/2] ^= 1
			must(t, os.WriteFile(path, data, 0o600))
		}, "WRONG DATA"},
		{"a file is too many", func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "002"), nil, 0o600))
		}, "WRONG FILES"},
		{"another volume", func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)); must(t, os.Mkdir(dir, 0o755)) },
			"WRONG FILES"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(t.TempDir()) // The volume's paths are relative to it.
			v := &volume{Volume: &orchestrator.Volume{Claim: orchestrator.Claim{Name: "v"}}, data: contents{}}
			must(t, os.MkdirAll(v.Target(), 0o755))
			w := loneWorker(t)
			for range 2 {
				must(t, w.write(v))
			}
			test.damage(t, v.Target())
			err := w.verify(v)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("verify said %v, want %q", err, test.want)
			}
		})
	}
}

// TestVerifyFindsDamageOfDevices does the same without a filesystem.
func TestVerifyFindsDamageOfDevices(t *testing.T) {
	t.Chdir(t.TempDir())
	v := &volume{Volume: &orchestrator.Volume{Claim: orchestrator.Claim{Name: "v"}}, kind: kind{block: true},
		data: contents{}}
	must(t, os.MkdirAll(filepath.Dir(v.Target()), 0o755))
	must(t, os.WriteFile(v.Target(), make([]byte, 4*mib), 0o600))
	w := loneWorker(t)
	for range 3 {
		must(t, w.write(v))
	}
	must(t, w.verify(v))
	if len(v.data) != 3 || v.data["000"] == v.data["001"] || v.data["001"] == sha256.Sum256(make([]byte, mib)) {
		t.Errorf("what was written is all the same: %x", v.data)
	}
	device, err := os.OpenFile(v.Target(), os.O_WRONLY, 0)
	must(t, err)
	_, err = device.WriteAt(make([]byte, 512), mib+4096)
	must(t, err)
	must(t, device.Close())
	if err := w.verify(v); err == nil || !strings.Contains(err.Error(), "001 holds WRONG DATA") {
		t.Errorf("a sector of 001 is zero, and verify said %v", err)
	}
}

func TestGrownFindsWhatHasNotGrown(t *testing.T) {
	t.Chdir(t.TempDir())
	v := &volume{Volume: &orchestrator.Volume{Claim: orchestrator.Claim{Name: "v"}},
		kind: kind{block: true, enforced: true}}
	must(t, os.MkdirAll(filepath.Dir(v.Target()), 0o755))
	must(t, os.WriteFile(v.Target(), make([]byte, 4*mib), 0o600))
	if err := v.grown(3*mib, mib); err != nil {
		t.Errorf("it has grown by 1 MiB: %v", err)
	}
	if err := v.grown(4*mib, mib); err == nil {
		t.Error("it has not grown, and no complaint")
	}
}

// TestPlanFollowsTheSeed checks that a seed repeats a plan, and that the plan contains all its kinds of kills.
func TestPlanFollowsTheSeed(t *testing.T) {
	plans := func(seed uint64) []plan {
		rng := rand.New(rand.NewPCG(seed, 1<<32))
		var list []plan
		for range 200 {
			list = append(list, nextPlan(rng))
		}
		return list
	}
	list := plans(7)
	if !slices.Equal(list, plans(7)) || slices.Equal(list, plans(8)) {
		t.Error("the plan does not follow the seed")
	}
	var starting, children int
	for _, p := range list {
		if p.starting {
			starting++
		} else if p.after < 50*time.Millisecond || p.after > 500*time.Millisecond {
			t.Errorf("a kill comes after %s", p.after)
		}
		if p.children {
			children++
		}
	}
	if starting == 0 || children == 0 || children == len(list) {
		t.Errorf("of %d kills %d hit a start and %d the children", len(list), starting, children)
	}
}

func loneWorker(t *testing.T) *worker {
	t.Helper()
	return &worker{run: &run{life: t.Context(), halt: make(chan struct{})}, rng: rand.New(rand.NewPCG(1, 1))}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
