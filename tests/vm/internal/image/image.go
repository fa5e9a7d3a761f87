package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/store"
)

// Image is the guest's kernel and disk.
type Image struct{ dir string }

// Kernel returns the path of the kernel.
func (i Image) Kernel() string { return filepath.Join(i.dir, "vmlinuz") }

// Disk returns the path of the root filesystem, an ext4. Guests must not write to it.
func (i Image) Disk() string { return filepath.Join(i.dir, "root.ext4") }

// Maker builds images.
type Maker struct {
	Store  *store.Store
	Source string // the folder of this package's source
}

// errDownload reports a failed download; the package lists may be stale.
var errDownload = errors.New("packages cannot be downloaded")

// Make returns the image, and builds it if the store does not have it.
func (m Maker) Make(ctx context.Context) (Image, error) {
	image, err := m.try(ctx)
	if !errors.Is(err, errDownload) {
		return image, err
	}
	return m.tryAgain(ctx)
}

// tryAgain updates the package lists first, unless another process has already done so.
func (m Maker) tryAgain(ctx context.Context) (Image, error) {
	if err := os.MkdirAll(m.Store.Dir, 0o755); err != nil {
		return Image{}, err
	}
	unlock, err := store.Lock(ctx, filepath.Join(m.Store.Dir, ".lists.lock"))
	if err != nil {
		return Image{}, err
	}
	defer unlock()
	image, err := m.try(ctx)
	if !errors.Is(err, errDownload) {
		return image, err
	}
	failed := update(ctx)
	image, err = m.try(ctx)
	switch {
	case !errors.Is(err, errDownload):
		return image, err
	case failed != nil: // Then the lists need not be current.
		return Image{}, fmt.Errorf("%w; %w", store.Unfetched(fmt.Errorf("apt-get update failed: %w", failed)), err)
	default:
		return Image{}, store.Unfetched(err)
	}
}

func (m Maker) try(ctx context.Context) (Image, error) {
	dir, err := os.MkdirTemp("", "stowage-vm-packages-")
	if err != nil {
		return Image{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	packages, err := resolve(ctx, dir)
	if err != nil {
		return Image{}, fmt.Errorf("%w: %w", errDownload, err)
	}
	key := store.NewKey().Sources(m.Source)
	for _, p := range packages {
		key.Text(p.String())
	}
	name, err := key.String()
	if err != nil {
		return Image{}, err
	}
	path, err := m.Store.Make(ctx, store.Item{
		Name: "image", Key: name,
		Make: func(ctx context.Context, path string, progress *store.Progress) error {
			return build(ctx, path, packages, progress)
		},
	})
	return Image{path}, err
}

// build builds the image's folder at the path, using one folder for the packages and one for their contents.
func build(ctx context.Context, path string, packages []Package, progress io.Writer) error {
	work := path + ".work"
	if err := errors.Join(os.RemoveAll(work), os.MkdirAll(work, 0o755), os.Mkdir(path, 0o755)); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	debs, root := filepath.Join(work, "packages"), filepath.Join(work, "root")
	if err := errors.Join(os.Mkdir(debs, 0o755), os.Mkdir(root, 0o755)); err != nil {
		return err
	}
	fmt.Fprintf(progress, "downloading %d packages\n", len(packages))
	if err := download(ctx, debs, packages); err != nil {
		return fmt.Errorf("%w: %w", errDownload, err)
	}
	fmt.Fprintln(progress, "unpacking")
	if err := unpack(ctx, debs, root); err != nil {
		return err
	}
	fmt.Fprintln(progress, "making the disk")
	image := Image{path}
	if err := errors.Join(takeKernel(root, image.Kernel()), finish(ctx, root)); err != nil {
		return err
	}
	return makeDisk(ctx, root, image.Disk())
}
