package localvolume

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local"
)

// TestPagesReadWhatTheyShow checks that the cost of a page depends on its length, not on the number of all orders: the
// cache copies each order that it returns.
func TestPagesReadWhatTheyShow(t *testing.T) {
	const count, limit = 2000, 10
	m, cache := newCrowd(t, count)
	for kind, page := range pagesOf(m) {
		var shown []string
		for token, more := "", true; more; more = token != "" {
			cache.objects = 0
			handles, next, err := page(t.Context(), backends.Page{Limit: limit, Token: token})
			if err != nil {
				t.Fatal(err)
			}
			if len(handles) > limit || cache.objects > count/10 {
				t.Fatalf("a page of %d %s shows %d after reading %d of %d orders", limit, kind, len(handles), cache.objects, count)
			}
			shown, token = append(shown, handles...), next
		}
		if all, _, err := page(t.Context(), backends.Page{}); err != nil || !slices.Equal(all, shown) {
			t.Errorf("a page without a limit has %d %s, and pages of %d have %d: %v", len(all), kind, limit, len(shown), err)
		}
		inOrder := slices.IsSorted(shown)
		if different := len(slices.Compact(shown)); different != count || !inOrder {
			t.Errorf("the pages show %d of %d %s, in order: %t", different, count, kind, inOrder)
		}
	}
}

// TestForeignNamesAreNotListed: the name of an order that no master created need not be a handle. No later page could
// begin after it.
func TestForeignNamesAreNotListed(t *testing.T) {
	var volumes v1alpha1.LocalVolumeList
	for _, name := range []string{"lv-00", local.Handle("one") + "0", "x", "x-00", local.Handle("one")} {
		o := readyVolume("one")
		o.Name = name
		volumes.Items = append(volumes.Items, o)
	}
	m := masterOver(cached(t, &volumes, &v1alpha1.LocalSnapshotList{}, &v1alpha1.LocalSnapshotGroupList{}))
	found, next, err := m.List(t.Context(), backends.Page{Limit: 1})
	if err != nil || next != "" || len(found) != 1 || found[0].Handle != local.Handle("one") {
		t.Errorf("the volumes are %+v, with the token %q for more: %v", found, next, err)
	}
}

// BenchmarkPage measures the only page of few volumes or snapshots, and a page in the middle of many.
func BenchmarkPage(b *testing.B) {
	for _, count := range []int{100, 100_000} {
		m, _ := newCrowd(b, count)
		for kind, page := range pagesOf(m) {
			_, token, err := page(b.Context(), backends.Page{Limit: max(count/2, 500)})
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/%d", kind, count), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, _, err := page(b.Context(), backends.Page{Limit: 500, Token: token}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// pagesOf returns the enumerations, of handles.
func pagesOf(m *Master) map[string]func(context.Context, backends.Page) ([]string, string, error) {
	return map[string]func(context.Context, backends.Page) ([]string, string, error){
		"volumes": func(ctx context.Context, page backends.Page) (handles []string, next string, err error) {
			found, next, err := m.List(ctx, page)
			for _, v := range found {
				handles = append(handles, v.Handle)
			}
			return handles, next, err
		},
		"snapshots": func(ctx context.Context, page backends.Page) (handles []string, next string, err error) {
			found, next, err := m.ListSnapshots(ctx, "", page)
			for _, s := range found {
				handles = append(handles, s.Handle)
			}
			return handles, next, err
		},
	}
}
