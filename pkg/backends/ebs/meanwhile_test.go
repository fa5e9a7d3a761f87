package ebs_test

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestWhatIsDeletedWhileItIsFound makes a process delete a thing that it created a moment ago, while another call has
// seen the thing and asks whether it exists. EC2's "not found" proves nothing for such a young thing, but its success
// of the deletion does.
func TestWhatIsDeletedWhileItIsFound(t *testing.T) {
	for name, row := range map[string]struct {
		answered bool
		want     backends.Kind
	}{
		"when EC2 has answered the deletion": {true, backends.NotFound},
		"while its answer is on its way":     {false, backends.Busy},
	} {
		t.Run("volume "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMeanwhile(t, "DeleteVolume", "CreateTags", row.answered)
				v := m.d.make("v")
				m.remove = func() error { return m.d.Delete(t.Context(), v.Handle) }
				_, err := m.d.Find(t.Context(), region.Spec("v"))
				m.ended(err, row.want)
			})
		})
		t.Run("snapshot "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMeanwhile(t, "DeleteSnapshot", "DeleteTags", row.answered)
				spec := backends.SnapshotSpec{Name: "s", Volume: m.d.make("v").Handle}
				s, err := m.d.f.Snapshot.CreateSnapshot(t.Context(), spec)
				if err != nil {
					t.Fatal(err)
				}
				m.remove = func() error { return m.d.f.Snapshot.DeleteSnapshot(t.Context(), s.Handle) }
				_, err = m.d.f.Snapshot.FindSnapshot(t.Context(), spec)
				m.ended(err, row.want)
			})
		})
	}
}

// TestDeletionIsKnownWhoseCallerHasLeft makes EC2 answer the deletion of a young snapshot after the caller has left.
func TestDeletionIsKnownWhoseCallerHasLeft(t *testing.T) {
	synctest.Test(t, deletionIsKnownWhoseCallerHasLeft)
}

func deletionIsKnownWhoseCallerHasLeft(t *testing.T) {
	d := open(t, region.New(t, region.Quick(), 0), func(c *ebs.Config) {
		c.AWS.HTTPClient = after{c.AWS.HTTPClient, "DeleteSnapshot", func() { <-time.After(time.Second) }}
	})
	spec := backends.SnapshotSpec{Name: "s", Volume: d.make("v").Handle}
	s, err := d.f.Snapshot.CreateSnapshot(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.f.Snapshot.DeleteSnapshot(within(t, time.Second/2), s.Handle); !backends.Is(err, backends.Busy) {
		t.Fatalf("its caller leaves with %v, want Busy", err)
	}
	<-time.After(time.Second)
	if found, err := d.f.Snapshot.FindSnapshot(t.Context(), spec); !backends.Is(err, backends.NotFound) {
		t.Errorf("found %+v with %v, want NotFound", found, err)
	}
}

// meanwhile is a process that deletes a thing just before it asks EC2 about it.
type meanwhile struct {
	*testing.T
	d       driver
	remove  func() error
	release chan struct{} // closed when EC2's answer to the deletion may come
	removed chan error
}

// newMeanwhile delays the question until EC2 has carried out the deletion. If answered is set, the answer to the
// deletion arrives at once, otherwise at the end of the test.
func newMeanwhile(t *testing.T, deletion, question string, answered bool) *meanwhile {
	t.Helper()
	m := &meanwhile{T: t, release: make(chan struct{}), removed: make(chan error, 1)}
	carriedOut := make(chan struct{})
	if answered {
		close(m.release)
	}
	hold := func() { close(carriedOut); <-m.release }
	ask := sync.OnceFunc(func() {
		go func() { m.removed <- m.remove() }()
		<-carriedOut
		<-time.After(time.Second / 2) // The thing is gone, and the answer has arrived if answered is set.
	})
	m.d = open(t, region.New(t, region.Quick(), 0), func(c *ebs.Config) {
		c.AWS.HTTPClient = before{after{c.AWS.HTTPClient, deletion, hold}, question, ask}
	})
	return m
}

// ended checks the outcome of the question, and that the deletion succeeded.
func (m *meanwhile) ended(err error, want backends.Kind) {
	m.Helper()
	if !backends.Is(err, want) {
		m.Errorf("found with %v, want %v", err, want)
	}
	select {
	case <-m.release:
	default:
		close(m.release)
	}
	if err := <-m.removed; err != nil {
		m.Errorf("deleted with %v", err)
	}
}

// after calls a function when an action has been carried out, before its answer arrives.
type after struct {
	aws.HTTPClient
	action string
	call   func()
}

// Do sends the request.
func (a after) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	response, err := a.HTTPClient.Do(r)
	if bytes.HasPrefix(body, []byte("Action="+a.action+"&")) {
		a.call()
	}
	return response, err
}
