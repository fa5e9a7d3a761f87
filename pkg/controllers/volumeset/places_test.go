package volumeset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
)

// TestUses compares a tally with a comparison of each volume with each place, including places with different segments.
func TestUses(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0)) // A seed repeats a run.
	some := func(number int, isEven bool) (all []place) {
		for range number {
			p := place{"zone": fmt.Sprint(random.IntN(3)), "node": fmt.Sprint(random.IntN(3))}
			if !isEven && random.IntN(3) == 0 {
				delete(p, []string{"zone", "node"}[random.IntN(2)])
			}
			isKnown := func(q place) bool { return q.key() == p.key() }
			if !slices.ContainsFunc(all, isKnown) {
				all = append(all, p)
			}
		}
		return all
	}
	for range 1000 {
		from := some(random.IntN(6), random.IntN(2) == 0)
		used := slices.Concat(some(3, true), some(3, false), []place{nil})
		if random.IntN(9) == 0 {
			from = []place{nil} // anywhere
		}
		for i, got := range newTally(from, used).uses {
			want := 0
			for _, v := range used {
				if v.within(from[i]) {
					want++
				}
			}
			if got != want {
				t.Fatalf("of the volumes %v %d are in %v of %v, want %d", used, got, from[i], from, want)
			}
		}
	}
}

// BenchmarkPlaces chooses places for sixteen more volumes of a set with ten thousand, on a thousand nodes with a place
// each.
func BenchmarkPlaces(b *testing.B) {
	var nodes []storagev1.CSINode
	labels := map[string]map[string]string{}
	for i := range 1000 {
		node := storagev1.CSINode{}
		node.Name = fmt.Sprint("node-", i)
		node.Spec.Drivers = []storagev1.CSINodeDriver{{Name: "driver", TopologyKeys: []string{"driver/node"}}}
		nodes, labels[node.Name] = append(nodes, node), map[string]string{"driver/node": node.Name}
	}
	var used []place
	for i := range 10_000 {
		used = append(used, place{"driver/node": fmt.Sprint("node-", i%1000)})
	}
	for b.Loop() {
		choose(places("driver", nodes, labels, nil), used, 16, func(place) int { return 16 })
	}
}
