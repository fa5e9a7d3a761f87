package tests

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// TestDigests checks that every image can be specified by its digest. Unlike a tag, a digest cannot refer to another
// image later.
func TestDigests(t *testing.T) {
	for _, in := range installs() {
		if in.schemaless { // The backend does not exist yet.
			continue
		}
		t.Run(in.name+"/helm", func(t *testing.T) { checkDigests(t, charted(t, digested(in), false)) })
		t.Run(in.name+"/kustomize", func(t *testing.T) { checkDigests(t, digestedOverlay(t, in)) })
	}
}

func checkDigests(t *testing.T, objects []object) {
	t.Helper()
	for id, pod := range pods(t, objects) {
		for _, c := range containers(pod) {
			if !strings.HasSuffix(c.Image, "@"+digest) || strings.Contains(c.Image, ":dev@") {
				t.Errorf("%s: %s runs %s, want it by its digest", id, c.Name, c.Image)
			}
		}
	}
}

// digested returns the chart's values with a digest for each image.
func digested(in install) map[string]any {
	values := maps.Clone(in.values)
	values["image"] = map[string]any{"repository": "registry.example/stowage", "digest": digest}
	sidecars := map[string]any{}
	for _, name := range []string{"provisioner", "attacher", "resizer", "snapshotter", "registrar", "livenessProbe"} {
		sidecars[name] = map[string]any{"image": "registry.example/csi-" + name + ":v1@" + digest}
	}
	values["sidecars"] = sidecars
	return values
}

// digestedOverlay renders an install through a user's own overlay, which sets each image's digest.
func digestedOverlay(t *testing.T, in install) []object {
	t.Helper()
	images := map[string]bool{}
	for _, pod := range pods(t, kustomized(t, in.folder)) {
		for _, c := range containers(pod) {
			name, _, _ := strings.Cut(c.Image, ":")
			images[name] = true
		}
	}
	folder, err := filepath.Abs(filepath.Join("..", in.folder))
	if err != nil {
		t.Fatal(err)
	}
	own := t.TempDir()
	if folder, err = filepath.Rel(own, folder); err != nil { // kustomize accepts no absolute path.
		t.Fatal(err)
	}
	text := "resources: [" + folder + "]\nimages:\n"
	for name := range images {
		text += "  - {name: " + name + ", digest: " + digest + "}\n"
	}
	if err := os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kustomizedAt(t, own)
}

// TestDigestOrTag checks that an image's digest takes precedence over its tag, and that it must be valid.
func TestDigestOrTag(t *testing.T) {
	for _, broken := range []string{"v1", "sha256:", "sha256:0123", strings.ToUpper(digest), digest + "0"} {
		if _, err := rendered(map[string]any{"image": map[string]any{"repository": "stowage", "digest": broken}},
			false); err == nil {
			t.Errorf("the digest %q is accepted", broken)
		}
	}
	for want, image := range map[string]map[string]any{
		"stowage:v1":        {"repository": "stowage", "tag": "v1", "digest": ""},
		"stowage@" + digest: {"repository": "stowage", "tag": "v1", "digest": digest},
	} {
		for _, pod := range pods(t, charted(t, map[string]any{"image": image}, false)) {
			if got := container(t, pod, "stowage"); got.Image != want || got.ImagePullPolicy != corev1.PullIfNotPresent {
				t.Errorf("%v makes the image %s, want %s", image, got.Image, want)
			}
		}
	}
}
