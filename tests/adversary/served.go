package adversary

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/tests/stall"
)

// servedKind is the kind of a disk that is a server's directory, and can stop answering.
const servedKind = "served"

// servedDisk returns the number of the setup's disk that is on a server; -1 for none.
func (s Setup) servedDisk() int {
	return slices.IndexFunc(s.Disks, func(d Disk) bool { return d.FSType == servedKind })
}

// overServedPool returns a setup with a pool on a disk, and one on a server. The directory of the latter has the
// world's name: if the run is killed, a loop device only shows its file's path on the server, which is gone.
func overServedPool() Setup {
	pool := func(name string) map[string]string { return map[string]string{"pool": name} }
	return Setup{
		Name: "local-served", Disks: []Disk{{FSType: "ext4", MiB: 512}, {FSType: servedKind}}, Long: true, Profiles: "silent",
		Classes: []Class{
			{Parameters: pool("quick"), Raw: true, Sized: true, Modified: readAhead()},
			{Parameters: pool("slow"), Raw: true, Sized: true, Disk: 1},
		},
		Definition: just(local.Definition),
		Config: func(w *world, _ Variant) string {
			return fmt.Sprintf("pools:\n- {name: quick, type: image, path: %s}\n- {name: slow, type: image, path: %s}\n",
				filepath.Join(w.disks[0].dir, "quick"), filepath.Join(w.disks[1].dir, filepath.Base(w.workspace.Dir)))
		},
	}
}

// overServedShare returns a setup with shares of two servers: one is on a disk, and the other is served by a process.
func overServedShare() Setup {
	const other = "other"
	s := overShares("nfs-served", false)
	s.Disks[1] = Disk{FSType: servedKind, Server: other}
	s.Classes[1].Parameters, s.Classes[1].Aside = share(other, "disk-1"), false
	s.Profiles, s.Long = "silent", true
	return s
}

// serve makes a server serve a directory, which is beside the images, as the disk.
func (d *disk) serve() (err error) {
	dir := d.image + ".real"
	if err := errors.Join(os.Mkdir(dir, 0o755), os.MkdirAll(d.dir, 0o755)); err != nil {
		return err
	}
	d.server, err = stall.ServeAt(dir, d.dir)
	return err
}

// resume makes each server answer.
func (w *world) resume() error { return w.eachServer((*stall.Process).Continue) }

// endServers ends the servers when nothing uses them any more.
func (w *world) endServers() error { return w.eachServer((*stall.Process).Close) }

func (w *world) eachServer(do func(*stall.Process) error) error {
	var problems []error
	for _, d := range w.disks {
		if d.server != nil {
			problems = append(problems, do(d.server))
		}
	}
	return errors.Join(problems...)
}
