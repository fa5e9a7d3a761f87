package images

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/programs"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/store"
)

const (
	// Stowage is the driver's image. A node prepends docker.io/library to the name.
	Stowage = "stowage:dev"
	// Pause is the image of the container that holds a pod's namespaces.
	Pause = core + "pause:3.10.2"
	// BusyBox is the image of a shell and the usual tools.
	BusyBox = tests + "busybox:1.37.0-1"

	core     = "registry.k8s.io/"
	tests    = core + "e2e-test-images/"
	sidecars = core + "sig-storage/"

	// The versions of the two sidecars that stand-ins replace.
	registrarVersion = "v2.17.0"
	probeVersion     = "v2.19.0"
)

// Maker builds images of programs.
type Maker struct {
	Builder *programs.Builder
	Store   *store.Store
	Tree    string // the root of the source tree
}

// All returns the archives of all images.
func (m *Maker) All(ctx context.Context) ([]string, error) {
	list, err := m.list(ctx)
	if err != nil {
		return nil, err
	}
	var archives []string
	for _, image := range list {
		archive, err := m.make(ctx, image)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", image.Name, err)
		}
		archives = append(archives, archive)
	}
	stowage, err := m.stowage(ctx)
	return append(archives, stowage), err
}

func (m *Maker) list(ctx context.Context) ([]Image, error) {
	pause, err := m.pause(ctx)
	if err != nil {
		return nil, err
	}
	tools, err := busybox(ctx)
	if err != nil {
		return nil, err
	}
	agnhost, err := m.Builder.Build(ctx, programs.Agnhost())
	if err != nil {
		return nil, err
	}
	gnu, err := glibc(tools)
	if err != nil {
		return nil, err
	}
	list := []Image{
		pause,
		{Name: BusyBox, Cmd: []string{"sh"}, Files: tools},
		{Name: tests + "nginx:1.15-4", Cmd: []string{"httpd", "-f", "-p", "80", "-h", "/usr/share/nginx/html"}, Files: tools},
		{
			Name: tests + "agnhost:2.63.0", Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"},
			Files: agnhostFiles(tools, agnhost),
		},
		{Name: tests + "glibc-dns-testing:2.0.0", Cmd: []string{"sleep", "infinity"}, Files: gnu},
	}
	more, err := m.sidecars(ctx)
	return append(list, more...), err
}

// sidecars returns images that contain only a program, as upstream's do.
func (m *Maker) sidecars(ctx context.Context) ([]Image, error) {
	var list []Image
	for _, p := range programs.Sidecars() {
		binary, err := m.Builder.Build(ctx, p)
		if err != nil {
			return nil, err
		}
		list = append(list, Image{
			Name:       sidecars + p.Name + ":" + m.version(p),
			Entrypoint: []string{"/" + p.Name},
			Files:      []File{{Path: p.Name, Mode: 0o755, Source: binary}},
		})
	}
	return list, nil
}

func (m *Maker) version(p programs.Program) string {
	switch p.Name {
	case "csi-node-driver-registrar":
		return registrarVersion
	case "livenessprobe":
		return probeVersion
	}
	return m.Builder.Version(p.Version)
}

// make returns the archive of an image. Files of the store contain their key in their names, so that the name
// identifies the content. Other files are hashed.
func (m *Maker) make(ctx context.Context, image Image) (string, error) {
	definition, err := json.Marshal(image)
	if err != nil {
		return "", err
	}
	key := store.NewKey(string(definition))
	for _, file := range image.Files {
		if file.Source != "" && filepath.Dir(file.Source) != m.Store.Dir {
			key.Files(file.Source)
		}
	}
	return m.archive(ctx, image.Name, key, func(_ context.Context, path string, _ *store.Progress) error {
		return write(image, path)
	})
}

// archive returns the store's path of an image's archive.
func (m *Maker) archive(
	ctx context.Context, image string, key *store.Key, write func(context.Context, string, *store.Progress) error,
) (string, error) {
	text, err := key.String()
	if err != nil {
		return "", err
	}
	name, _, _ := strings.Cut(filepath.Base(image), ":")
	return m.Store.Make(ctx, store.Item{Name: "image-" + name, Key: text, Make: write})
}
