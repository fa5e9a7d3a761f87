package ebs_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestPagesAreCheap: an enumeration requests each page of EC2 once, however many pages the caller reads.
func TestPagesAreCheap(t *testing.T) { synctest.Test(t, pagesAreCheap) }

func pagesAreCheap(t *testing.T) {
	const volumes, limit, each = 1200, 100, 500
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	fill(t, d, volumes)
	before := w.Server.Calls()["DescribeVolumes"]
	var handles []string
	pages := 0
	for token, more := "", true; more; more = token != "" {
		found, next, err := d.f.List.List(t.Context(), backends.Page{Limit: limit, Token: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range found {
			handles = append(handles, v.Handle)
		}
		token = next
		pages++
	}
	if len(handles) != volumes || !slices.IsSorted(handles) || len(slices.Compact(slices.Clone(handles))) != volumes {
		t.Errorf("%d handles in %d pages, want %d different ones in their order", len(handles), pages, volumes)
	}
	asked := w.Server.Calls()["DescribeVolumes"] - before
	t.Logf("%d volumes in %d pages: %d requests", volumes, pages, asked)
	if most := (volumes + each - 1) / each; asked > most {
		t.Errorf("%d requests, want at most %d", asked, most)
	}
}

// TestPagesGoOn: if its results are no longer kept, in this process or in the next one, an enumeration continues after
// its last handle, and shows the current state.
func TestPagesGoOn(t *testing.T) { synctest.Test(t, pagesGoOn) }

func pagesGoOn(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	fill(t, d, 30)
	first, token, err := d.f.List.List(t.Context(), backends.Page{Limit: 10})
	if err != nil || token == "" {
		t.Fatal(token, err)
	}
	second, _, err := d.f.List.List(t.Context(), backends.Page{Limit: 10, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	gone := second[0].Handle
	if err := d.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	for what, asked := range map[string]driver{"later": d, "another process": open(t, w, nil)} {
		time.Sleep(2 * time.Minute) //nolint:forbidigo // simulated time
		rest, _, err := asked.f.List.List(t.Context(), backends.Page{Token: token})
		if err != nil || len(rest) != 19 || rest[0].Handle != second[1].Handle || rest[0].Handle <= first[9].Handle {
			t.Errorf("%s: %d volumes, %v; want the 19 that are there after %s", what, len(rest), err, first[9].Handle)
		}
	}
}

func fill(t *testing.T, d driver, volumes int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var group sync.WaitGroup
	for i := range volumes {
		group.Go(func() {
			if _, err := d.Create(ctx, region.Spec(fmt.Sprint("v", i))); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// TestFewQuestionsFindWhatIsGone lists snapshots of which another process has deleted some, while reads show them all.
func TestFewQuestionsFindWhatIsGone(t *testing.T) { synctest.Test(t, fewQuestionsFindWhatIsGone) }

func fewQuestionsFindWhatIsGone(t *testing.T) {
	const all, gone = 64, 8
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	v := d.make("one")
	var handles []string
	for i := range all {
		s, err := d.f.Snapshot.CreateSnapshot(t.Context(),
			backends.SnapshotSpec{Name: fmt.Sprint("s", i), Volume: v.Handle})
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, s.Handle)
	}
	<-time.After(time.Minute)
	for i := range gone {
		if err := d.f.Snapshot.DeleteSnapshot(t.Context(), handles[i*all/gone]); err != nil {
			t.Fatal(err)
		}
	}
	<-time.After(time.Second)
	w.Server.SetLag(5 * time.Second)
	other, before := open(t, w, nil), w.Server.Calls()["DeleteTags"]
	list, _, err := other.f.Snapshots.ListSnapshots(t.Context(), "", backends.Page{})
	if err != nil || len(list) != all-gone {
		t.Errorf("%d are listed with %v, want %d", len(list), err, all-gone)
	}
	if n := w.Server.Calls()["DeleteTags"] - before; n > 2*gone+1 {
		t.Errorf("EC2 was asked %d times, want %d at most", n, 2*gone+1)
	}
}
