package nfs

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
)

// placedConfig returns a configuration with a share in zone a, one in zone b that only some nodes reach, and one that
// all reach.
func placedConfig() *Config {
	return &Config{Shares: []ShareConfig{
		{Name: "a", Server: testServer, Share: testShare, Topology: backends.Topology{"zone": "a"}},
		{Name: "b", Server: testServer, Share: testShare + "/zone-b", Topology: backends.Topology{"zone": "b", "nas": "yes"}},
		{Name: "all", Server: testServer, Share: testShare + "/everywhere"},
	}}
}

// placedShares creates the directories that the configuration names.
func placedShares(tb testing.TB, root string) {
	tb.Helper()
	for _, dir := range []string{"zone-b", "everywhere"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			tb.Fatal(err)
		}
	}
}

func placedSpec(name, share string) backends.Spec {
	spec := specOf(name)
	spec.Parameters = &Parameters{ShareName: share}
	return spec
}

// The suite's checks of topology hold for a backend whose shares have some.
func TestPlacedConformance(t *testing.T) {
	backendtest.Run(t, conformance(func(name string) backends.Spec { return placedSpec(name, "a") },
		func(tb testing.TB, root string, o *backends.Options) {
			placedShares(tb, root)
			o.Config, o.Topology = placedConfig(), backends.Topology{"zone": "a", "nas": "no"}
		}))
}

// openPlaced opens the backend over the placed shares, on a node in zone a.
func openPlaced(t *testing.T) *backends.Instance {
	t.Helper()
	servers, root := serve(t)
	placedShares(t, root)
	instance, err := DefinitionOver(servers).Open(t.Context(), backends.Options{
		Driver: "nfs.test", DataDir: t.TempDir(), NodeID: "n", Config: placedConfig(), Log: slog.New(slog.DiscardHandler),
		Topology: backends.Topology{"zone": "a", "nas": "yes", "other": "x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backendtest.Close(t.Context(), instance) }) // it closes nothing that a test could miss
	return instance
}

func TestTopology(t *testing.T) {
	instance := openPlaced(t)
	zoneA, zoneB := backends.Topology{"zone": "a", "nas": "yes"}, backends.Topology{"zone": "b", "nas": "yes"}
	without := backends.Topology{"zone": "b", "nas": "no"}
	for share, rows := range map[string]map[string]struct {
		from backends.Topology
		want bool
	}{
		"a": {"its zone": {zoneA, true}, "another": {zoneB, false},
			"its zone, nothing else said": {backends.Topology{"zone": "a"}, true}},
		"b": {"its place": {zoneB, true}, "its zone, a node without": {without, false},
			"a place of a part of its keys": {backends.Topology{"nas": "yes"}, true}},
		"all": {"one zone": {zoneA, true}, "the other": {zoneB, true}},
	} {
		for name, row := range rows {
			t.Run(share+" from "+name, func(t *testing.T) { created(t, instance, share, row.from, row.want) })
		}
	}
	place, err := instance.Node.(backends.Locator).Topology(t.Context())
	if err != nil || len(place) != 2 || place["zone"] != "a" || place["nas"] != "yes" {
		t.Errorf("the node is at %v (%v), want the segments that shares have and no others", place, err)
	}
}

// created creates a volume that must be reachable from a place, and checks the capacity, or the reason for the refusal.
func created(t *testing.T, instance *backends.Instance, share string, from backends.Topology, want bool) {
	t.Helper()
	spec := placedSpec("v-"+strings.ReplaceAll(t.Name(), "/", "-"), share)
	spec.Topology.Requisite = []backends.Topology{from}
	v, err := instance.Controller.Create(t.Context(), spec)
	capacity, capacityErr := instance.Controller.(backends.CapacityReporter).Capacity(t.Context(),
		backends.CapacityQuery{Parameters: spec.Parameters, Topology: from})
	if capacityErr != nil || capacity.AvailableBytes > 0 != want {
		t.Errorf("from there %d bytes are free (%v), want any: %t", capacity.AvailableBytes, capacityErr, want)
	}
	if !want {
		if !backends.Is(err, backends.Exhausted) || !strings.Contains(err.Error(), "allowedTopologies") {
			t.Errorf("got %v, want that there is no such share", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if reached := len(v.Topology) == 1; reached != (share != "all") || reached && !v.Topology[0].Agrees(from) {
		t.Errorf("the volume is reached from %v, want the place of share %s", v.Topology, share)
	}
}

// No call for a share creates anything on another, whatever place is requested. So something is proven about it even if
// the call is refused because the share cannot be reached from there.
func TestAbsenceOnPlacedShares(t *testing.T) {
	instance := openPlaced(t)
	zoneA, zoneB := backends.Topology{"zone": "a", "nas": "no"}, backends.Topology{"zone": "b", "nas": "no"}
	for _, share := range []string{"a", "all"} {
		if _, err := instance.Controller.Create(t.Context(), placedSpec("earlier", share)); err != nil {
			t.Fatal(err)
		}
		for _, places := range [][]backends.Topology{nil, {zoneA}, {zoneB}, {zoneA, zoneB}} {
			spec := placedSpec("one", share)
			spec.Topology.Requisite = places
			if !instance.Controller.(backends.Prover).IsAbsent(t.Context(), spec) {
				t.Errorf("on %s, where %v is required, it is not absent", share, places)
			}
		}
	}
}

func TestWrongTopologies(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*backends.Options)
		words  []string
	}{
		"a node of which nothing is said": {func(o *backends.Options) { o.Topology = nil }, []string{"--topology"}},
		"a node that lacks a segment":     {func(o *backends.Options) { delete(o.Topology, "nas") }, []string{"nas"}},
		"a key that is no label": {func(o *backends.Options) {
			o.Config.(*Config).Shares[0].Topology = backends.Topology{"a b": "c"}
		}, []string{"a b", "label"}},
		"a value that is no label": {func(o *backends.Options) {
			o.Config.(*Config).Shares[0].Topology = backends.Topology{"zone": ""}
		}, []string{"zone"}},
	} {
		servers, _ := serve(t)
		options := backends.Options{
			Driver: "nfs.test", DataDir: t.TempDir(), NodeID: "n", Config: placedConfig(), Log: slog.New(slog.DiscardHandler),
			Topology: backends.Topology{"zone": "a", "nas": "yes"},
		}
		row.change(&options)
		instance, err := DefinitionOver(servers).Open(t.Context(), options)
		if err == nil {
			_ = backendtest.Close(t.Context(), instance) // the test has failed already
		}
		if !backends.Is(err, backends.Invalid) {
			t.Errorf("%s: got %v, want Invalid", name, err)
			continue
		}
		for _, word := range row.words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: the failure does not mention %q: %v", name, word, err)
			}
		}
	}
}
