package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRender renders a small chart. Each row shows one case.
func TestRender(t *testing.T) {
	const values = `# One release serves one backend.

# The kind of storage.
backend: local
image:
  tag: "" # the chart's | appVersion
  #  digest: an example
# Pin it with hostname: <node>.
nodeSelector:
  kubernetes.io/os: linux
manager:
  # Finds volumes.
  orphans: {enabled: false}
resources: {limits: {memory: 2Gi}} # of the driver
`
	const schema = `{"properties": {"global": {"type": "object"}, "backend": {"enum": ["local", "nfs"]},
		"image": {"properties": {"tag": {"type": "string"}, "port": {"type": "integer", "minimum": 1, "maximum": 9}}},
		"nodeSelector": {"type": "object"}, "resources": {"type": "object"}, "manager": {"properties": {"orphans": {
		"properties": {"enabled": {"type": "boolean", "description": "Whether it looks."}}}}}}}`
	const want = `
| ` + "`backend` | `local` | `local`, `nfs`" + ` | The kind of storage. |
| ` + "`image.tag` | `\"\"`" + ` | string | the chart's \| appVersion |
| ` + "`image.port`" + ` |  | integer, 1 to 9 |  |
| ` + "`nodeSelector` | `{kubernetes.io/os: linux}`" + ` | object | Pin it with hostname: \<node>. |
| ` + "`manager.orphans`" + ` |  |  | Finds volumes. |
| ` + "`manager.orphans.enabled` | `false`" + ` | boolean | Whether it looks. |
| ` + "`resources` | `{limits: {memory: 2Gi}}`" + ` | object | of the driver |
`
	page, err := rendered(t, values, schema)
	if _, rows, _ := strings.Cut(page, "|---|---|---|---|"); err != nil || rows != want {
		t.Errorf("got %v, %s\nwant %s", err, rows, want)
	}
}

// TestUnknownValue checks that a value that the schema would refuse is an error that names its line.
func TestUnknownValue(t *testing.T) {
	_, err := rendered(t, "image:\n  tga: x\n", `{"properties": {"image": {"properties": {"tag": {}}}}}`)
	if err == nil || !strings.Contains(err.Error(), "values.yaml:2: the schema has no image.tga") {
		t.Errorf("got %v, want the line and the value", err)
	}
}

func rendered(t *testing.T, values, schema string) (string, error) {
	t.Helper()
	chart := t.TempDir()
	for name, text := range map[string]string{"values.yaml": values, "values.schema.json": schema} {
		if err := os.WriteFile(filepath.Join(chart, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var page bytes.Buffer
	err := run(&page, chart)
	return page.String(), err
}
