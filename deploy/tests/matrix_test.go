package tests

import (
	"fmt"
	"strings"
	"testing"
)

// factors returns the values whose combinations are tested, and their levels. The first is the version of Kubernetes,
// which is not a value.
func factors() []factor {
	one := []any{map[string]any{"name": "a"}}
	attributes := []any{map[string]any{"name": "a", "parameters": map[string]any{"b": "c"}}}
	shares := func(topology map[string]any) map[string]any {
		return map[string]any{"shares": []any{map[string]any{"name": "a", "server": "b", "share": "/c",
			"topology": topology}}}
	}
	flag, unsaid := []any{false, true}, []any{nil, false, true}
	return []factor{
		{"Kubernetes", []any{"v1.30.0", "v1.33.9", "v1.36.3"}},
		{"backend", []any{"local", "nfs", "ebs"}},
		{"local.mode", []any{"standalone", "cluster"}},
		{"image.digest", []any{nil, digest}},
		{"imagePullSecrets", []any{nil, one}},
		{"log.format", []any{"text", "json"}},
		{"metricsPort", []any{nil, 9816, 65530}},
		{"hostPID", flag},
		{"extraArgs", []any{nil, []any{"--trace-ratio=0"}}},
		{"extraEnv", []any{nil, []any{map[string]any{"name": "AWS_REGION", "value": "us-east-1"}}}},
		{"podLabels", []any{nil, map[string]any{"a": "b"}}},
		{"node.hostNetwork", unsaid},
		{"csiDriver.attachRequired", unsaid},
		{"csiDriver.storageCapacity", unsaid},
		{"csiDriver.preventPodSchedulingIfMissing", flag},
		{"sidecars.snapshotter.enabled", flag},
		{"sidecars.snapshotter.groups", unsaid},
		{"manager.enabled", flag},
		{"manager.orphans.enabled", flag},
		{"manager.failover.enabled", flag},
		{"manager.startupTaint.enabled", flag},
		{"recycler.enabled", flag},
		{"nfs.config", []any{nil, shares(map[string]any{}), shares(map[string]any{"zone": "a"})}},
		{"nfs.topologyKeys", []any{nil, []any{"zone"}}},
		{"ebs.config", []any{nil, map[string]any{"clusterID": "a"}}},
		{"ebs.region", []any{nil, "eu-central-1"}},
		{"ebs.credentialsSecret", []any{nil, "keys"}},
		{"ebs.nodeAllocatableUpdatePeriodSeconds", []any{nil, 0}},
		{"controller.tolerations", []any{nil, []any{}}},
		{"storageClasses", []any{nil, one}},
		{"volumeSnapshotClasses", []any{nil, one}},
		{"volumeGroupSnapshotClasses", []any{nil, one}},
		{"volumeAttributesClasses", []any{nil, attributes}},
	}
}

// TestMatrix checks that each two values of the chart together result in objects that Kubernetes accepts, or in a
// refusal that names a given value. A refusal hides other ones: without the value that it names, the rest is rendered
// again, until it is accepted.
func TestMatrix(t *testing.T) {
	all, accepted, refused := factors(), 0, 0
	for _, row := range pairwise(all) {
		given := map[string]any{}
		for i, level := range row {
			if value := all[i].levels[level]; value != nil {
				given[all[i].path] = value
			}
		}
		for {
			files, err := renderedOn(given["Kubernetes"].(string), nested(given), false)
			if err == nil {
				checkAccepted(t, given, files)
				accepted++
				break
			}
			named := firstNamed(err.Error(), given)
			if refused++; named == "" {
				t.Errorf("%v: the refusal names none of these values: %v", given, err)
				break
			}
			delete(given, named)
		}
	}
	if accepted == 0 || refused == 0 {
		t.Errorf("%d combinations are accepted, and %d refused: want some of both", accepted, refused)
	}
}

// firstNamed returns the given value that an error names first. The backend and Kubernetes are no mistakes by
// themselves.
func firstNamed(text string, given map[string]any) (named string) {
	first := len(text)
	for path := range given {
		if i := strings.Index(text, path+" "); i >= 0 && i < first && path != "backend" && path != "Kubernetes" {
			named, first = path, i
		}
	}
	return named
}

// nested returns values by their keys instead of paths.
func nested(given map[string]any) map[string]any {
	values := map[string]any{}
	for path, value := range given {
		if path == "Kubernetes" {
			continue
		}
		keys, block := strings.Split(path, "."), values
		for _, key := range keys[:len(keys)-1] {
			if block[key] == nil {
				block[key] = map[string]any{}
			}
			block, _ = block[key].(map[string]any)
		}
		block[keys[len(keys)-1]] = value
	}
	return values
}

// checkAccepted checks that Kubernetes' types have all fields of the objects, and that no object is there twice.
func checkAccepted(t *testing.T, given map[string]any, files map[string]string) {
	t.Helper()
	seen := map[string]bool{}
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for _, o := range decoded(t, []byte(text)) {
			if _, err := strict(o); err != nil || seen[o.id()] {
				t.Errorf("%v: %s, there twice: %t: %v", given, o.id(), seen[o.id()], err)
			}
			seen[o.id()] = true
		}
	}
	if id := fmt.Sprintf("CSIDriver/%s.csi.stowage.dev", given["backend"]); !seen[id] {
		t.Errorf("%v: there is no %s", given, id)
	}
}

// TestPairwise checks that each pair of levels is in a row, and that the rows are few and always the same.
func TestPairwise(t *testing.T) {
	all := factors()
	rows := pairwise(all)
	for i := range all {
		for j := range i {
			for a := range all[i].levels {
				for b := range all[j].levels {
					if !hasPair(rows, i, a, j, b) {
						t.Errorf("no row has %s %v and %s %v", all[i].path, all[i].levels[a], all[j].path, all[j].levels[b])
					}
				}
			}
		}
	}
	if len(rows) > 40 || fmt.Sprint(rows) != fmt.Sprint(pairwise(all)) {
		t.Errorf("there are %d rows, or others the second time", len(rows))
	}
}

func hasPair(rows [][]int, i, a, j, b int) bool {
	for _, row := range rows {
		if row[i] == a && row[j] == b {
			return true
		}
	}
	return false
}
