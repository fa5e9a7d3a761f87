package node_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
	"github.com/stowage-csi/stowage/pkg/node/internal/samples"
)

// A device that lost its beginning is never formatted, neither an image, whose file tells where it holds data, nor a
// disk. The error says where data was seen, and what can be done.
func TestRemnants(t *testing.T) {
	for _, s := range samples.Remnants() {
		t.Run(s.Name, func(t *testing.T) { neverTouched(t, s, filesystem.Types(), "at byte ", "if nothing on it is needed") })
	}
}

// A filesystem beside the signature of another user of the device is ambiguous. It is neither formatted nor mounted,
// whatever type is requested.
func TestOwnedBySomebodyElse(t *testing.T) {
	for _, s := range samples.Owned() {
		t.Run(s.Name, func(t *testing.T) {
			neverTouched(t, s, append(filesystem.Types(), ""), "at byte ", "wipefs")
		})
	}
}

// neverTouched stages a sample as each of the types, as an image and as a disk.
func neverTouched(t *testing.T, s samples.Sample, fsTypes []string, words ...string) {
	t.Helper()
	made := filepath.Join(t.TempDir(), "made")
	s.Make(t, made)
	for _, form := range []string{"image", "disk"} {
		t.Run(form, func(t *testing.T) {
			w := newWorld(t)
			image := w.image("v", s.Size()>>20)
			w.must(os.Remove(image))
			w.must(os.Link(made, image)) // The sample must stay unchanged, or the test fails.
			file, err := os.Open(image)
			w.must(err)
			defer file.Close()
			if form == "disk" {
				w.disk(image)
			}
			before := contents(t, file)
			for _, fsType := range fsTypes {
				request := w.stageRequest("v")
				request.Use.FSType, request.TrustSamples = fsType, true
				err := w.service.Stage(w.context(), request)
				w.want(err, backends.Invalid, append(words, "holds "+s.Want)...)
				if err == nil {
					w.unstage(request)
				}
				if contents(t, file) != before {
					t.Fatalf("staging it as %q changed it", fsType)
				}
			}
			t.Log(w.service.Stage(w.context(), w.stageRequest("v")))
		})
	}
}

// disk puts volume v on the shelf as a disk: a loop device over a file that cannot be asked, because it has no name any
// more.
func (w *world) disk(image string) {
	w.Helper()
	path := w.node(image, false)
	w.must(os.Remove(image))
	w.Cleanup(func() {
		loop, err := os.Open(path)
		w.must(err)
		w.must(unix.IoctlSetInt(int(loop.Fd()), unix.LOOP_CLR_FD, 0))
		w.must(loop.Close())
	})
}

// contents returns a digest of the contents of a sparse file, and of where they are.
func contents(t *testing.T, file *os.File) [sha256.Size]byte {
	t.Helper()
	hash := sha256.New()
	for offset := int64(0); ; {
		start, err := unix.Seek(int(file.Fd()), offset, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return [sha256.Size]byte(hash.Sum(nil))
		}
		end, holeErr := unix.Seek(int(file.Fd()), start, unix.SEEK_HOLE)
		if err = errors.Join(err, holeErr); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(hash, start, end)
		if _, err := io.Copy(hash, io.NewSectionReader(file, start, end-start)); err != nil {
			t.Fatal(err)
		}
		offset = end
	}
}

// A volume that this driver did not create is formatted only if every byte is known to be zero, or if the request
// trusts samples. A volume that this driver created is formatted on the evidence of samples, too.
func TestWholeProof(t *testing.T) {
	const odd = 133<<20 + 7*4096 // no sample covers it
	for _, test := range []struct {
		name, form string
		mib        int64
		data       bool
		trust      bool
		want       string // in the error; empty for none
	}{
		{"a large image", "image", 2 << 20, false, false, ""},
		{"a small disk", "disk", 600, false, false, ""},
		{"a small disk with data between the samples", "disk", 600, true, false, "data at byte 139489280"},
		{"a large disk", "disk", 2 << 10, false, false, "volume attribute " + node.AllowFormat},
		{"a large disk that may be formatted", "disk", 2 << 10, false, true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			image := w.image("v", test.mib)
			if test.data {
				file, err := os.OpenFile(image, os.O_WRONLY, 0)
				w.must(err)
				_, err = file.WriteAt([]byte("data"), odd)
				w.must(errors.Join(err, file.Close()))
			}
			if test.form == "disk" {
				w.disk(image)
			}
			request := w.stageRequest("v")
			request.TrustSamples = test.trust
			err := w.service.Stage(w.context(), request)
			if test.want != "" {
				w.want(err, backends.Invalid, test.want)
			} else {
				w.must(err)
			}
			w.unstage(request)
		})
	}
}

// A filesystem that was created over a whole disk with partitions is mounted as before: the remains of the partitions
// are not in use.
func TestFormattedOverPartitions(t *testing.T) {
	for _, label := range []string{"dos", "gpt"} {
		for _, fsType := range filesystem.Types() {
			t.Run(fsType+" over "+label, func(t *testing.T) {
				w := newWorld(t)
				image := w.image("v", 300)
				force := map[string]string{"ext4": "-F"}[fsType]
				if force == "" {
					force = "-f"
				}
				script := fmt.Sprintf("printf 'label: %s\nstart=8M, size=64M\n' | sfdisk -q %s && mkfs.%s -q %s %s", label, image,
					fsType, force, image)
				if out, err := exec.CommandContext(t.Context(), "sh", "-ec", script).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				request := w.stageRequest("v")
				w.stage(request)
				if found := w.fsTypeAt(request.StagingPath); found != fsType {
					t.Errorf("mounted is %s, want %s", found, fsType)
				}
				w.unstage(request)
				w.wantNothingLeft()
			})
		}
	}
}
