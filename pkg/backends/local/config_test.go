package local

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
)

func decodeConfig(t *testing.T, text string) (*Config, error) {
	t.Helper()
	config := Definition().NewConfig().(*Config)
	return config, yaml.UnmarshalStrict([]byte(text), config)
}

func TestConfig(t *testing.T) {
	config, err := decodeConfig(t, `
freezeLimit: 5s
pools:
- name: fast
  type: image
  path: /srv/nvme
  capacity: 100Gi
  overcommit: 1.5
- {name: slow.1, type: directory}
`)
	must(t, err)
	s, err := config.resolve("/data")
	must(t, err)
	want := []poolSettings{
		{name: "fast", poolType: image, path: "/srv/nvme", capacity: 100 << 30, overcommit: 1.5},
		{name: "slow.1", poolType: directory, path: "/data/pools/slow.1", overcommit: 1},
	}
	if len(s.pools) != 2 || s.pools[0] != want[0] || s.pools[1] != want[1] || s.freezeLimit != 5*time.Second {
		t.Errorf("the settings are %+v, want %+v", s, want)
	}
}

func TestConfigIsStrict(t *testing.T) {
	for _, text := range []string{"pool: []", "pools: [{name: a, type: image, size: 1}]", "pools: {}", "pools: [a]"} {
		if _, err := decodeConfig(t, text); err == nil {
			t.Errorf("the configuration %q was accepted", text)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	for _, test := range []struct {
		text    string
		mention string
	}{
		{"freezeLimit: soon", "soon"},
		{"freezeLimit: -1s", "-1s"},
		{"pools: [{type: image}]", `""`},
		{"pools: [{name: ../up, type: image}]", "../up"},
		{"pools: [{name: a/b, type: image}]", "a/b"},
		{"pools: [{name: .., type: image}]", `".."`},
		{"pools: [{name: -a, type: image}]", "-a"},
		{"pools: [{name: Upper, type: image}]", "Upper"},
		{"pools: [{name: " + strings.Repeat("a", 64) + ", type: image}]", "63"},
		{"pools: [{name: a}]", `""`},
		{"pools: [{name: a, type: lvm}]", "lvm"},
		{"pools: [{name: a, type: image, path: relative}]", "relative"},
		{"pools: [{name: a, type: image, path: /a/../b}]", "/a/../b"},
		{"pools: [{name: a, type: image, path: /a/}]", "/a/"},
		{"pools: [{name: a, type: image, path: /}]", "/"},
		{`pools: [{name: a, type: image, path: "/a\0b"}]`, "clean"},
		{"pools: [{name: a, type: image, capacity: lots}]", "lots"},
		{"pools: [{name: a, type: image, capacity: '0'}]", "0"},
		{"pools: [{name: a, type: image, capacity: -1Gi}]", "-1Gi"},
		{"pools: [{name: a, type: image, overcommit: 0}]", "above 0"},
		{"pools: [{name: a, type: image, overcommit: -0.5}]", "-0.5"},
		{"pools: [{name: a, type: image, overcommit: 2000000}]", "2e+06"},
		{"pools: [{name: a, type: image}, {name: a, type: directory}]", `"a"`},
		{"pools: [{name: a, type: image, path: /x}, {name: b, type: image, path: /x}]", "/x"},
		{"pools: [{name: a, type: image, path: /x}, {name: b, type: image, path: /x/y}]", "/x/y"},
		{"pools: [{name: a, type: image, path: /x/y}, {name: b, type: image, path: /x}]", "/x/y"},
		{"pools: [{name: a, type: image, path: /data}]", "/data"},
		{"pools: [{name: a, type: image, path: /data/known}]", "/data/known"},
		{"pools: [{name: a, type: image, path: /data/pools}]", "/data/pools"},
	} {
		config, err := decodeConfig(t, test.text)
		must(t, err)
		_, err = config.resolve("/data")
		hasKind(t, test.text, err, backends.Invalid, test.mention)
	}
}

func TestPathsWithACommonBeginningAreApart(t *testing.T) {
	config, err := decodeConfig(t,
		"pools: [{name: a, type: image, path: /mnt/disk}, {name: b, type: image, path: /mnt/disk2}, {name: c, type: image, "+
			"path: /data2}]")
	must(t, err)
	if _, err := config.resolve("/data"); err != nil {
		t.Error(err)
	}
}

func TestOptionErrors(t *testing.T) {
	good := backends.Options{Driver: testDriver, NodeID: "node-1", DataDir: filepath.Join(t.TempDir(), "data")}
	for name, change := range map[string]func(*backends.Options){
		"no driver":               func(o *backends.Options) { o.Driver = "" },
		"no node":                 func(o *backends.Options) { o.NodeID = "" },
		"no data directory":       func(o *backends.Options) { o.DataDir = "" },
		"relative data directory": func(o *backends.Options) { o.DataDir = "data" },
		"another configuration":   func(o *backends.Options) { o.Config = &Parameters{} },
		"wrong configuration":     func(o *backends.Options) { o.Config = &Config{FreezeLimit: "x"} },
	} {
		options := good
		change(&options)
		_, err := open(t.Context(), options)
		hasKind(t, name, err, backends.Invalid)
	}
	instance, err := open(t.Context(), good) // The earlier failures left no lock behind.
	must(t, err)
	must(t, backendtest.Close(t.Context(), instance))
}
