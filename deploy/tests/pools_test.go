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

// pool is one that an install configures.
type pool struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Path     string `json:"path"`
	Capacity string `json:"capacity"`
	Reserve  string `json:"reserve"`
}

// poolsOf are the pools that the objects of an install of local volumes configure.
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

// TestPools checks that the example classes name pools that the overlay configures.
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

// TestPoolsSpareTheNode checks that volumes alone put no node under disk pressure as it comes: a pool on the node's own
// disk leaves more of it free than the kubelet wants by default, which removes images and drives pods off with less
// than 15 % (imagefs.available; https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction).
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

// TestReservesAreValues checks that the chart takes the reserves that the driver does, and no others.
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
