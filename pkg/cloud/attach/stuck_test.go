package attach

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// crammed is a cloud that accepts an attachment for which the node has no room, and never completes it.
type crammed struct{ *sim }

func (c crammed) Attach(_ context.Context, volume, node, name string) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked["attach "+volume+" to "+node]++
	c.set(volume, Attachment{Node: node, Name: name, ID: "1", State: Attaching, Began: time.Now()})
	return time.Now(), nil
}

// TestStuckAttachmentIsTold: the caller gets the reason, and nothing is detached but by its own request.
func TestStuckAttachmentIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(1)
		s.add("v", false)
		m := New(crammed{s}, machine(s).options)
		for _, row := range []struct {
			limit time.Duration
			want  string
		}{
			{5 * time.Second, `volume "v" is still attaching to node "one"`},
			{20 * time.Second, `to node "one", which has 1 disks with it, for `},
		} {
			err := within(t, row.limit, func(ctx context.Context) error {
				_, err := m.Attach(ctx, Request{Volume: "v", Node: "one"})
				return err
			})
			if !failure.Is(err, failure.Busy) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("in %v: %v, want Busy and %q", row.limit, err, row.want)
			}
		}
		if s.asked["attach v to one"] != 1 || s.asked["detach v from one"] != 0 {
			t.Errorf("the requests are %v, want one to attach", s.asked)
		}
		if err := m.Detach(t.Context(), Request{Volume: "v", Node: "one"}); err != nil || len(s.truth("v").Attachments) != 0 {
			t.Errorf("detached with %v, and it is %+v", err, s.truth("v"))
		}
	})
}

// TestUnshownAttachmentIsNotStuck: the time of an earlier attachment, which another process has ended, is not told for
// one that the cloud does not show yet.
func TestUnshownAttachmentIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(1)
		s.add("v", false)
		m := machine(s)
		if err := attachTo(t, m, "v", "one"); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if err := machine(s).Detach(t.Context(), Request{Volume: "v", Node: "one"}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		s.lag = 5 * time.Second
		err := within(t, 3*time.Second, func(ctx context.Context) error {
			_, err := m.Attach(ctx, Request{Volume: "v", Node: "one"})
			return err
		})
		if !failure.Is(err, failure.Busy) || strings.Contains(err.Error(), "attaching to node") {
			t.Errorf("not shown yet: %v, want Busy and no word of how long it is attaching", err)
		}
	})
}
