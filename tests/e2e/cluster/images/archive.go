package images

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"
)

// File is one entry of an image's only layer. Parent folders are optional.
type File struct {
	Path string // in the image, without a leading slash
	Mode int64
	// One of these, or none for a folder.
	Source string // a file of this machine
	Link   string // the target of a symbolic link
	Text   string
}

// Image is an image of one layer.
type Image struct {
	Name       string // with its registry and tag
	Entrypoint []string
	Cmd        []string
	Files      []File
}

// epoch is the timestamp of every entry in an image, so that the same files yield the same image.
func epoch() time.Time { return time.Unix(0, 0).UTC() }

// write writes the image as an archive with the layer, its configuration, and the manifest that names both, in the
// format of the Docker image specification v1.2.
func write(image Image, archive string) error {
	layer, err := os.CreateTemp("", "layer-*.tar")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(layer.Name()); _ = layer.Close() }()
	sum := sha256.New()
	if err := writeFiles(io.MultiWriter(layer, sum), image.Files); err != nil {
		return err
	}
	return writeArchive(image, archive, layer.Name(), hex.EncodeToString(sum.Sum(nil)))
}

func writeArchive(image Image, archive, layer, digest string) error {
	config, err := configuration(image, digest)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(config)
	configName, layerName := hex.EncodeToString(sum[:])+".json", digest+"/layer.tar"
	manifest, err := json.Marshal([]map[string]any{{
		"Config": configName, "RepoTags": []string{image.Name}, "Layers": []string{layerName},
	}})
	if err != nil {
		return err
	}
	file, err := os.Create(archive)
	if err != nil {
		return err
	}
	err = writeFiles(file, []File{
		{Path: layerName, Mode: 0o644, Source: layer},
		{Path: configName, Mode: 0o644, Text: string(config)},
		{Path: "manifest.json", Mode: 0o644, Text: string(manifest)},
	})
	return errors.Join(err, file.Close())
}

func configuration(image Image, layer string) ([]byte, error) {
	return json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "created": epoch(),
		"config": map[string]any{
			"Env":        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			"Entrypoint": image.Entrypoint, "Cmd": image.Cmd, "WorkingDir": "/",
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + layer}},
		"history": []map[string]any{{"created": epoch(), "created_by": "stowage tests/e2e/cluster"}},
	})
}

// writeFiles writes a tar of the files. Each file follows its parent folders.
func writeFiles(w io.Writer, files []File) error {
	out := tar.NewWriter(w)
	made := map[string]bool{".": true}
	for _, file := range files {
		if file.isFolder() {
			made[file.Path] = true
		}
		for _, folder := range above(file.Path) {
			if made[folder] {
				continue
			}
			made[folder] = true
			if err := addFile(out, File{Path: folder, Mode: 0o755}); err != nil {
				return err
			}
		}
		if err := addFile(out, file); err != nil {
			return fmt.Errorf("%s: %w", file.Path, err)
		}
	}
	return out.Close()
}

// above lists the parent folders of the path, the outermost first.
func above(name string) []string {
	var folders []string
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		folders = append(folders, dir)
	}
	slices.Reverse(folders)
	return folders
}

func (f File) isFolder() bool { return f.Source == "" && f.Link == "" && f.Text == "" }

func addFile(out *tar.Writer, f File) error {
	header := &tar.Header{Name: f.Path, Mode: f.Mode, ModTime: epoch(), Format: tar.FormatPAX}
	var content io.Reader = strings.NewReader(f.Text)
	switch {
	case f.Link != "":
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, f.Link, int64(fs.ModePerm)
	case f.Source != "":
		source, err := os.Open(f.Source)
		if err != nil {
			return err
		}
		defer func() { _ = source.Close() }()
		info, err := source.Stat()
		if err != nil {
			return err
		}
		header.Typeflag, header.Size, content = tar.TypeReg, info.Size(), source
	case f.Text != "":
		header.Typeflag, header.Size = tar.TypeReg, int64(len(f.Text))
	default:
		header.Typeflag, header.Name, content = tar.TypeDir, f.Path+"/", bytes.NewReader(nil)
	}
	if err := out.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(out, content)
	return err
}
