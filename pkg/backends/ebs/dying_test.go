package ebs_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestWhatMayBeDeletedYetIsNotFound makes the deletion requests arrive after their call has ended: callers do not get
// the things that the requests delete.
func TestWhatMayBeDeletedYetIsNotFound(t *testing.T) {
	const late = 8 * time.Second
	for name, patience := range map[string]time.Duration{
		"while it waits for the answer": time.Second, "once it has given it up": time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { whatMayBeDeletedYetIsNotFound(t, patience, late) })
		})
	}
}

func whatMayBeDeletedYetIsNotFound(t *testing.T, patience, late time.Duration) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	v, spec := d.make("v"), region.Spec("v")
	taken := backends.SnapshotSpec{Name: "s", Volume: d.make("source").Handle}
	s, err := d.f.Snapshot.CreateSnapshot(t.Context(), taken)
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range []string{"DeleteVolume", "DeleteSnapshot"} {
		w.Proxy.Script(faults.Rule{Action: action, Kind: faults.Delay, Delay: late, Times: 2})
	}
	if err := d.Delete(within(t, patience), v.Handle); !undecided(err) {
		t.Fatalf("deleted without an answer: %v", err)
	}
	if found, err := d.Find(t.Context(), spec); !backends.Is(err, backends.Busy) {
		t.Errorf("found %+v with %v, want Busy", found, err)
	}
	if err := d.f.Snapshot.DeleteSnapshot(within(t, patience), s.Handle); !undecided(err) {
		t.Fatalf("the snapshot deleted without an answer: %v", err)
	}
	if found, err := d.f.Snapshot.FindSnapshot(t.Context(), taken); !backends.Is(err, backends.Busy) {
		t.Errorf("found the snapshot %+v with %v, want Busy", found, err)
	}
	<-time.After(late / 2) // The request's own time is over, and the request has not arrived.
	if found, err := d.f.Snapshot.FindSnapshot(t.Context(), taken); !backends.Is(err, backends.Busy) {
		t.Errorf("found the snapshot afterwards: %+v with %v, want Busy", found, err)
	}
	<-time.After(2 * late)
	if _, err := d.f.Snapshot.FindSnapshot(t.Context(), taken); !backends.Is(err, backends.NotFound) {
		t.Errorf("the snapshot that is gone is found with %v, want NotFound", err)
	}
	made, err := d.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	again, err := d.f.Snapshot.CreateSnapshot(t.Context(), taken)
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(2 * late)
	if len(w.Server.Volumes()) != 2 || w.Server.Snapshots()[again.Handle] == nil || made.Handle == v.Handle {
		t.Errorf("made anew are %s and %s; there are %+v and %v", made.Handle, again.Handle, w.Server.Volumes(),
			w.Server.Snapshots())
	}
}

// TestWhatMayBeDeletedYetIsNotMade makes EC2 answer with a volume that another process has created with the token. A
// request of this process may still delete it.
func TestWhatMayBeDeletedYetIsNotMade(t *testing.T) { synctest.Test(t, whatMayBeDeletedYetIsNotMade) }

func whatMayBeDeletedYetIsNotMade(t *testing.T) {
	const late = 8 * time.Second
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, func(c *ebs.Config) {
		c.AWS.HTTPClient = before{c.AWS.HTTPClient, "CreateVolume", func() { w.Server.SetLag(0) }}
	})
	v := open(t, w, nil).make("v")
	<-time.After(time.Minute)
	w.Proxy.Script(faults.Rule{Action: "DeleteVolume", Kind: faults.Delay, Delay: late, Times: 2})
	if err := d.Delete(within(t, time.Second), v.Handle); !undecided(err) {
		t.Fatalf("deleted without an answer: %v", err)
	}
	<-time.After(2 * time.Second) // The request's own time is over.
	w.Server.SetLag(time.Hour)    // A look by name does not show it.
	if made, err := d.Create(within(t, time.Minute), region.Spec("v")); !undecided(err) {
		t.Errorf("made %+v with %v, want Busy or Unavailable", made, err)
	}
	if n := w.Server.Calls()["CreateVolume"]; n != 2 || len(w.Server.Volumes()) != 1 {
		t.Errorf("it was asked for %d times before it was deleted, want twice; there are %+v", n, w.Server.Volumes())
	}
	<-time.After(2 * late)
	made, err := d.Create(within(t, time.Minute), region.Spec("v"))
	if err != nil || made.Handle == v.Handle || len(w.Server.Volumes()) != 1 {
		t.Errorf("made anew is %+v with %v; there are %+v", made, err, w.Server.Volumes())
	}
}

// answering is a client of EC2 that answers one action itself.
type answering struct {
	aws.HTTPClient
	action string
	status int
	answer string
}

// Do forwards other requests.
func (a answering) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !bytes.HasPrefix(body, []byte("Action="+a.action+"&")) {
		return a.HTTPClient.Do(r)
	}
	return &http.Response{StatusCode: a.status, Request: r, Header: http.Header{"Content-Type": {"text/xml"}},
		Body: io.NopCloser(strings.NewReader(a.answer))}, nil
}

// TestWhatIsRefusedArrivesNoMore answers a deletion request with an unknown code, and without one. A request that EC2
// refuses has no effect. A request on which EC2 fails, or which another server answers, may have one.
func TestWhatIsRefusedArrivesNoMore(t *testing.T) {
	const unheard = "<Response><Errors><Error><Code>Unheard.Of</Code></Error></Errors></Response>"
	for name, tt := range map[string]struct {
		status int
		answer string
		dying  bool
	}{
		"refused":   {status: http.StatusBadRequest, answer: unheard},
		"failed":    {http.StatusInternalServerError, unheard, true},
		"another's": {http.StatusRequestTimeout, "<html></html>", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := open(t, region.New(t, region.Quick(), 0), func(c *ebs.Config) {
					c.AWS.HTTPClient = answering{c.AWS.HTTPClient, "DeleteVolume", tt.status, tt.answer}
				})
				v := d.make("v")
				if err := d.Delete(t.Context(), v.Handle); !undecided(err) {
					t.Fatalf("deleted with %v", err)
				}
				_, err := d.Find(t.Context(), region.Spec("v"))
				if tt.dying != backends.Is(err, backends.Busy) || !tt.dying && err != nil {
					t.Errorf("found with %v, want Busy: %t", err, tt.dying)
				}
			})
		})
	}
}

// TestRefusalIsNotFinalWhileADeletionMayArrive makes EC2 refuse a deletion finally while an earlier request for it may
// still arrive: a caller that relied on the refusal would lose the thing that the earlier request deletes.
func TestRefusalIsNotFinalWhileADeletionMayArrive(t *testing.T) {
	for name, row := range map[string]struct {
		action string
		delete func(d driver, v, s string) error
		refuse func(t *testing.T, w *region.Region, d driver, v string)
		kind   backends.Kind
	}{
		"a volume that is in use": {"DeleteVolume", func(d driver, v, _ string) error { return d.Delete(d.Context(), v) },
			func(t *testing.T, _ *region.Region, d driver, v string) {
				if _, err := d.f.Attach.Attach(t.Context(), region.Request(v, region.NodeA)); err != nil {
					t.Error(err)
				}
			}, backends.InUse},
		"a snapshot that may not be deleted": {"DeleteSnapshot",
			func(d driver, _, s string) error { return d.f.Snapshot.DeleteSnapshot(d.Context(), s) },
			func(_ *testing.T, w *region.Region, _ driver, _ string) { w.Server.Forbid("DeleteSnapshot") }, backends.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := region.New(t, region.Quick(), 0)
				d := open(t, w, nil)
				v := d.make("v").Handle
				s, err := d.f.Snapshot.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v})
				if err != nil {
					t.Fatal(err)
				}
				w.Proxy.Script(faults.Rule{Action: row.action, Kind: faults.Delay, Delay: 8 * time.Second, Times: 2})
				if err := row.delete(d, v, s.Handle); !undecided(err) {
					t.Fatalf("without an answer: %v", err)
				}
				w.Proxy.Stop()
				row.refuse(t, w, d, v)
				if err := row.delete(d, v, s.Handle); !undecided(err) {
					t.Errorf("refused while a request is on its way: %v, want Busy or Unavailable", err)
				}
				<-time.After(time.Minute)
				if err := row.delete(d, v, s.Handle); !backends.Is(err, row.kind) {
					t.Errorf("refused: %v, want %v", err, row.kind)
				}
			})
		})
	}
}
