package orphan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// newLeak returns a scene with the volumes a and b, of which no PersistentVolume names b. Leaked volumes are deleted
// after a day.
func newLeak(t *testing.T) *scene {
	t.Helper()
	s := newScene(t)
	s.Repair, s.DeleteAfter, s.Deleter = false, 24*time.Hour, s.storage
	s.storage.volumes = []csiclient.Listed{{Handle: "a"}, {Handle: "b"}}
	return s
}

// days sweeps every hour, for the given days and an hour.
func (s *scene) days(days int) (last error) {
	for range 24*days + 2 {
		last = s.sweep(s.Context())
		<-time.After(time.Hour)
	}
	return last
}

func (s *scene) wantDeleted(handles ...string) {
	s.Helper()
	if !slices.Equal(s.storage.deleted, handles) {
		s.Errorf("deleted are %q, want %q", s.storage.deleted, handles)
	}
}

// wantEvent checks that one of the events has the text, and drops them all.
func (s *scene) wantEvent(part string) {
	s.Helper()
	var all []string
	for len(s.events.Events) > 0 {
		all = append(all, <-s.events.Events)
	}
	if !slices.ContainsFunc(all, func(event string) bool { return strings.Contains(event, part) }) {
		s.Errorf("no event has %q: %q", part, all)
	}
}

func TestLeakedVolumeIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLeak(t)
		if err := s.days(0); err != nil {
			t.Error(err)
		}
		s.wantEvent("it is deleted once that has been so for 24h0m0s")
		s.wantDeleted()
		if err := s.days(1); err != nil {
			t.Error(err)
		}
		s.wantDeleted("b")
		s.wantEvent("no PersistentVolume had named it for 24h0m0s")
	})
}

// TestFailedSweepKeepsTheTimeOfALeak checks that failed sweeps do not keep a leaked volume forever, and that one
// successful sweep after them deletes nothing.
func TestFailedSweepKeepsTheTimeOfALeak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLeak(t)
		s.sweeps(2)
		s.storage.err = errors.New("throttled")
		_ = s.days(1)
		s.storage.err = nil
		s.sweeps(1)
		s.wantDeleted()
		s.sweeps(1)
		s.wantDeleted("b")
	})
}

func TestLeakedVolumesThatStay(t *testing.T) {
	inline := detachment("ebs.csi.example", difference{handle: "b", node: "one"}, "")
	inline.Annotations = nil
	for name, change := range map[string]func(s *scene){
		"nobody asks for it":        func(s *scene) { s.DeleteAfter = 0 },
		"it is attached":            func(s *scene) { s.storage.volumes[1].Nodes = []string{"id-1"} },
		"it is attached elsewhere":  func(s *scene) { s.storage.volumes[1].Nodes = []string{"id-9"} },
		"a VolumeAttachment has it": func(s *scene) { s.create(inline) },
		"a PersistentVolume has it": func(s *scene) { s.create(volumeOf("b")) },
		"the cache does not know it": func(s *scene) {
			s.live = fake.NewClientBuilder().WithScheme(s.api.Scheme()).WithObjects(volumeOf("b")).Build()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newLeak(t)
				change(s)
				if err := s.days(2); err != nil {
					t.Error(err)
				}
				s.wantDeleted()
			})
		})
	}
}

// volumeOf returns a PersistentVolume that names the volume.
func volumeOf(handle string) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + handle}}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.example", VolumeHandle: handle}
	return volume
}

func (s *scene) create(object client.Object) {
	s.Helper()
	if err := s.api.Create(s.Context(), object.DeepCopyObject().(client.Object)); err != nil {
		s.Fatal(err)
	}
}

// TestLeaksThatAreMany checks that nothing is deleted if many volumes have no PersistentVolume: the PersistentVolumes
// were lost, for example when an older etcd was restored.
func TestLeaksThatAreMany(t *testing.T) {
	for _, c := range []struct {
		known, left int
		deletes     bool
	}{{0, 1, false}, {1, 1, true}, {1, 2, false}, {19, 2, false}, {20, 2, true}, {20, 3, false}} {
		t.Run(fmt.Sprintf("%d and %d", c.known, c.left), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newLeak(t)
				s.storage.volumes = nil
				for i := range c.known {
					if handle := fmt.Sprintf("known-%d", i); i > 0 {
						s.create(volumeOf(handle))
						s.storage.volumes = append(s.storage.volumes, csiclient.Listed{Handle: handle})
					} else {
						s.storage.volumes = append(s.storage.volumes, csiclient.Listed{Handle: "a"})
					}
				}
				for i := range c.left {
					s.storage.volumes = append(s.storage.volumes, csiclient.Listed{Handle: fmt.Sprintf("left-%d", i)})
				}
				err := s.days(2)
				if deleted := len(s.storage.deleted); c.deletes && (deleted != c.left || err != nil) ||
					!c.deletes && (deleted > 0 || err == nil || !strings.Contains(err.Error(), "too many to be left over")) {
					t.Errorf("%d were deleted, and the last sweep ends with %v", deleted, err)
				}
			})
		})
	}
}

// TestDeletionThatFails checks that a failed deletion is reported, and retried after the same time.
func TestDeletionThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLeak(t)
		s.storage.stuck = errors.New("a snapshot is being made of it")
		_ = s.days(1)
		s.wantEvent("a snapshot is being made of it")
		s.storage.stuck = nil
		s.sweeps(2)
		s.wantDeleted()
		_ = s.days(1)
		s.wantDeleted("b")
	})
}

// TestLongWords checks that the API server accepts each event: whatever a driver says or a volume is called, the event
// is short, and has no control character.
func TestLongWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLeak(t)
		s.storage.volumes[1].Handle = strings.Repeat("éa\x1b", 100)
		s.storage.stuck = errors.New("\x1b[2J" + strings.Repeat("a snapshot is being made of it. ", 99))
		_ = s.days(1)
		if len(s.events.Events) != 2 {
			t.Errorf("%d events, want one of the leak, and one of the deletion that failed", len(s.events.Events))
		}
		for len(s.events.Events) > 0 {
			words := strings.SplitN(<-s.events.Events, " ", 3) // the type, the reason and the text
			text := words[2]
			if len(text) > 1024 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("the text of %s has %d bytes, or a control character: %.40q", words[1], len(text), text)
			}
			if !strings.Contains(text, "éa") || words[1] == "VolumeNotDeleted" && !strings.Contains(text, `\x1b[2Ja snapshot`) {
				t.Errorf("the text of %s does not name the volume, or the error: %q", words[1], text)
			}
		}
	})
}

// TestDeletionNeedsOwnVolumes checks that deletion is refused for a driver that may list volumes of other clusters.
func TestDeletionNeedsOwnVolumes(t *testing.T) {
	o := Options{Driver: &storage{}, Deleter: &storage{others: true}, DeleteAfter: time.Hour}
	if err := o.check(); err == nil || !strings.Contains(err.Error(), "volumes of other clusters") {
		t.Errorf("the check ends with %v", err)
	}
	o.DeleteAfter = 0
	if err := o.check(); err != nil {
		t.Error(err)
	}
}
