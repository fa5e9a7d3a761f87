package images

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// read returns the contents of a tar by name, and the names in their order.
func read(t *testing.T, r io.Reader) (map[string]*tar.Header, map[string]string, []string) {
	t.Helper()
	headers, contents := map[string]*tar.Header{}, map[string]string{}
	var names []string
	for in := tar.NewReader(r); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return headers, contents, names
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if headers[header.Name] != nil {
			t.Errorf("%s is there twice", header.Name)
		}
		headers[header.Name], contents[header.Name] = header, string(text)
		names = append(names, header.Name)
	}
}

func testImage(t *testing.T) (Image, []byte) {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "binary")
	if err := os.WriteFile(binary, []byte("program"), 0o600); err != nil {
		t.Fatal(err)
	}
	image := Image{Name: "registry.example/a/b:v1", Entrypoint: []string{"/bin/b"}, Cmd: []string{"serve"}, Files: []File{
		{Path: "tmp", Mode: 0o1777},
		{Path: "bin/b", Mode: 0o755, Source: binary},
		{Path: "usr/bin/b", Link: "/bin/b"},
		{Path: "etc/text", Mode: 0o644, Text: "text"},
	}}
	archive := filepath.Join(dir, "archive")
	if err := write(image, archive); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	return image, text
}

func TestWriteManifest(t *testing.T) {
	image, archive := testImage(t)
	_, contents, _ := read(t, bytes.NewReader(archive))
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal([]byte(contents["manifest.json"]), &manifest); err != nil || len(manifest) != 1 ||
		len(manifest[0].Layers) != 1 {
		t.Fatalf("the manifest is %s (%v)", contents["manifest.json"], err)
	}
	if tags := manifest[0].RepoTags; !slices.Equal(tags, []string{image.Name}) {
		t.Errorf("the names are %v", tags)
	}
	text := contents[manifest[0].Config]
	sum := sha256.Sum256([]byte(text))
	if want := hex.EncodeToString(sum[:]) + ".json"; manifest[0].Config != want {
		t.Errorf("the configuration is named %s, not by its hash %s", manifest[0].Config, want)
	}
	var config struct {
		Config struct{ Entrypoint, Cmd []string }
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(config.Config.Entrypoint, image.Entrypoint) || !slices.Equal(config.Config.Cmd, image.Cmd) {
		t.Errorf("the image runs %v %v", config.Config.Entrypoint, config.Config.Cmd)
	}
	layer := sha256.Sum256([]byte(contents[manifest[0].Layers[0]]))
	if want := []string{"sha256:" + hex.EncodeToString(layer[:])}; !slices.Equal(config.RootFS.DiffIDs, want) {
		t.Errorf("the layers are %v, not %v", config.RootFS.DiffIDs, want)
	}
}

func TestWriteLayer(t *testing.T) {
	_, archive := testImage(t)
	_, contents, _ := read(t, bytes.NewReader(archive))
	for name, content := range contents {
		if !strings.HasSuffix(name, "/layer.tar") {
			continue
		}
		headers, files, names := read(t, strings.NewReader(content))
		want := []string{"tmp/", "bin/", "bin/b", "usr/", "usr/bin/", "usr/bin/b", "etc/", "etc/text"}
		if !slices.Equal(names, want) {
			t.Fatalf("the layer holds %v, not %v", names, want)
		}
		if headers["tmp/"].Mode != 0o1777 || headers["bin/b"].Mode != 0o755 {
			t.Errorf("the modes are %o and %o", headers["tmp/"].Mode, headers["bin/b"].Mode)
		}
		if link := headers["usr/bin/b"]; link.Typeflag != tar.TypeSymlink || link.Linkname != "/bin/b" {
			t.Errorf("the link is %v", link)
		}
		if files["bin/b"] != "program" || files["etc/text"] != "text" {
			t.Errorf("the files are %v", files)
		}
		return
	}
	t.Errorf("there is no layer in %v", slices.Collect(maps.Keys(contents)))
}

func TestWriteSame(t *testing.T) {
	_, one := testImage(t)
	_, two := testImage(t)
	if !bytes.Equal(one, two) {
		t.Error("the same files make two images")
	}
}

func TestStatic(t *testing.T) {
	if err := static(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no program: %v", err)
	}
	// The shell of every Debian uses the C library.
	if err := static("/bin/sh"); err == nil {
		t.Error("the shell is said to be static")
	}
}
