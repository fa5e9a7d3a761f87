package tests

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"
)

// pool is a pool in an installation's configuration.
type pool struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Path     string `json:"path"`
	Capacity string `json:"capacity"`
	Reserve  string `json:"reserve"`
}

// poolsOf returns the pools that an installation of local volumes configures.
func poolsOf(t *testing.T, objects []object) []pool {
	t.Helper()
	var content struct {
		Pools []pool `json:"pools"`
	}
	i := slices.IndexFunc(objects, func(o object) bool {
		return strings.HasPrefix(o.id(), "ConfigMap/stowage-system/stowage-local-config")
	})
	if i < 0 {
		t.Fatal("no pools are configured")
	}
	config := typed(t, objects[i]).(*corev1.ConfigMap)
	if err := yaml.UnmarshalStrict([]byte(config.Data["config.yaml"]), &content); err != nil {
		t.Fatal(err)
	}
	return content.Pools
}

// TestPools checks that the example classes use pools that the overlay configures.
func TestPools(t *testing.T) {
	var names []string
	for _, pool := range poolsOf(t, kustomized(t, installs()[0].folder)) {
		names = append(names, pool.Name)
	}
	for _, o := range kustomized(t, examples) {
		if class, ok := typed(t, o).(*storagev1.StorageClass); ok && !slices.Contains(names, class.Parameters["pool"]) {
			t.Errorf("%s: there is no pool %q among %q", o.id(), class.Parameters["pool"], names)
		}
	}
}

// TestPoolsSpareTheNode checks that by default volumes alone put no node under disk pressure. A pool on the node's own
// disk leaves more free space than the kubelet's default threshold: below 15 %, the kubelet removes images and evicts
// pods (imagefs.available; https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction).
func TestPoolsSpareTheNode(t *testing.T) {
	const kubelet = 15
	for _, in := range installs() {
		if in.backend != "local" {
			continue
		}
		for way, objects := range map[string][]object{"kustomize": kustomized(t, in.folder),
			"helm": charted(t, in.values, in.schemaless)} {
			pools := poolsOf(t, objects)
			if len(pools) == 0 {
				t.Errorf("%s, %s: no pool is configured, and the driver's own default keeps nothing free", in.name, way)
			}
			for _, pool := range pools {
				part, err := strconv.Atoi(strings.TrimSuffix(pool.Reserve, "%"))
				if own := pool.Path == "" || strings.HasPrefix(pool.Path, "/var/lib/"); own && (err != nil || part <= kubelet) {
					t.Errorf("%s, %s: the pool %s is on the node's disk and keeps %q of it free, want more than %d%%", in.name, way,
						pool.Name, pool.Reserve, kubelet)
				}
			}
		}
	}
}

// TestReservesAreValues checks that the chart accepts exactly the reserves that the driver accepts.
func TestReservesAreValues(t *testing.T) {
	for reserve, want := range map[string]bool{"": true, "20%": true, "10Gi": true, "500M": true, "1": true,
		"0%": false, "100%": false, "much": false, "1.5%": false, "10 Gi": false, "-1": false} {
		values := map[string]any{"local": map[string]any{"config": map[string]any{"pools": []any{
			map[string]any{"name": "image", "type": "image", "reserve": reserve}}}}}
		files, err := rendered(values, false)
		if (err == nil) != want {
			t.Errorf("the reserve %s is accepted: %t, want %t (%v)", reserve, err == nil, want, err)
		}
		said := regexp.MustCompile(`reserve: "?` + regexp.QuoteMeta(reserve) + `"?\n`)
		if want && !said.MatchString(files["stowage/templates/standalone.yaml"]) {
			t.Errorf("the reserve %s does not reach the driver", reserve)
		}
	}
}
