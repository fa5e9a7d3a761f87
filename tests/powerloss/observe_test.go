package powerloss

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// volumeRecord holds the fields of record.json that no call of the contract returns.
type volumeRecord struct {
	Name         string `json:"name"`
	Type         string `json:"type"`
	SizeBytes    int64  `json:"sizeBytes"`
	Allocation   string `json:"allocation"`
	OnDelete     string `json:"onDelete"`
	ReadAheadKiB int    `json:"readAheadKiB"`
}

func readRecord(dir string) (r volumeRecord, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "record.json"))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	return r, err
}

// observe returns the whole state.
func (b *backend) observe(ctx context.Context, groups []string) (world, error) {
	w := world{}
	return w, errors.Join(b.observeVolumes(ctx, w), b.observeSnapshots(ctx, w), b.observeGroups(ctx, w, groups),
		b.observeRetained(w))
}

func (b *backend) observeVolumes(ctx context.Context, w world) error {
	volumes, _, err := b.controller.List(ctx, backends.Page{})
	if err != nil {
		return err
	}
	var errs []error
	for _, v := range volumes {
		s, err := b.observeVolume(ctx, v)
		errs = append(errs, err)
		w["volume/"+v.Name] = s
	}
	return errors.Join(errs...)
}

// observeVolume opens the volume as a node does, and reads its content.
func (b *backend) observeVolume(ctx context.Context, v backends.Volume) (state, error) {
	s := state{SizeBytes: v.CapacityBytes, Fingerprint: v.Fingerprint, Source: cmp.Or(v.Source.Snapshot, v.Source.Volume)}
	source, err := b.node.Source(ctx, backends.Attachment{Handle: v.Handle})
	if err != nil {
		return s, err
	}
	path, err := b.lookAt(&s, source)
	if err != nil {
		return s, err
	}
	r, err := readRecord(filepath.Dir(path))
	s.Allocation, s.OnDelete, s.Content = r.Allocation, r.OnDelete, readContent(path)
	return s, errors.Join(err, b.node.Release(ctx, v.Handle))
}

// lookAt checks that the data has the size of the source.
func (b *backend) lookAt(s *state, source backends.Source) (string, error) {
	switch source := source.(type) {
	case backends.Directory:
		return source.Path, nil
	case backends.Device:
		s.ReadAhead = source.ReadAheadKiB
		var stat unix.Stat_t
		if err := unix.Stat(source.Path, &stat); err != nil {
			return "", err
		}
		if stat.Size != s.SizeBytes || source.Identity.SizeBytes != s.SizeBytes {
			return "", fmt.Errorf("%s has %d bytes, its source says %d, and the volume %d", source.Path, stat.Size,
				source.Identity.SizeBytes, s.SizeBytes)
		}
		return source.Path, b.checkAllocation(source.Path, &stat)
	}
	return "", fmt.Errorf("the source is a %T", source)
}

// checkAllocation checks that a full image has all its blocks.
func (b *backend) checkAllocation(path string, stat *unix.Stat_t) error {
	r, err := readRecord(filepath.Dir(path))
	if err == nil && r.Allocation == "full" && stat.Blocks*512 < stat.Size {
		err = fmt.Errorf("%s has allocation full and %d of %d bytes", path, stat.Blocks*512, stat.Size)
	}
	return err
}

func (b *backend) observeSnapshots(ctx context.Context, w world) error {
	snapshots, _, err := b.controller.ListSnapshots(ctx, "", backends.Page{})
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range snapshots {
		path, err := b.snapshotData(s)
		errs = append(errs, err)
		w["snapshot/"+s.Name] = state{SizeBytes: s.SizeBytes, Source: s.Volume, Group: s.Group, Content: readContent(path)}
	}
	return errors.Join(errs...)
}

// snapshotData returns the path of a snapshot's data, according to the local backend's documentation.
func (b *backend) snapshotData(s backends.Snapshot) (string, error) {
	if s.Group != "" {
		number := s.Name[strings.LastIndexByte(s.Name, '/')+1:]
		return filepath.Join(b.pool(imagePool), "groups", s.Group, number, "image"), nil
	}
	for pool, data := range map[string]string{imagePool: "image", directoryPool: "data"} {
		dir := filepath.Join(b.pool(pool), "snapshots", s.Handle)
		if _, err := os.Lstat(dir); err == nil {
			return filepath.Join(dir, data), nil
		}
	}
	return "", fmt.Errorf("snapshot %s is listed and is in no pool", s.Handle)
}

func (b *backend) observeGroups(ctx context.Context, w world, names []string) error {
	for _, name := range names {
		g, err := b.controller.FindGroup(ctx, name)
		if backends.Is(err, backends.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		w["group/"+name] = groupState(g)
	}
	return nil
}

// groupState returns the state of a group, which consists of its members.
func groupState(g *backends.Group) state {
	var members []string
	for _, s := range g.Snapshots {
		members = append(members, s.Handle)
	}
	return state{Content: strconv.Itoa(len(members)) + " members: " + strings.Join(members, " ")}
}

// observeRetained reads the volumes that were deleted and retained.
func (b *backend) observeRetained(w world) error {
	var errs []error
	for pool, data := range map[string]string{imagePool: "image", directoryPool: "data"} {
		dir := filepath.Join(b.pool(pool), "retained")
		entries, err := os.ReadDir(dir)
		errs = append(errs, err)
		for _, entry := range entries {
			r, err := readRecord(filepath.Join(dir, entry.Name()))
			errs = append(errs, err)
			w["retained/"+r.Name] = state{SizeBytes: r.SizeBytes, Content: readContent(filepath.Join(dir, entry.Name(), data))}
		}
	}
	return errors.Join(errs...)
}

// leftovers returns an error for files in folders that must be empty.
func (b *backend) leftovers(folders ...string) error {
	var errs []error
	for _, pool := range []string{imagePool, directoryPool} {
		for _, folder := range folders {
			entries, err := os.ReadDir(filepath.Join(b.pool(pool), folder))
			errs = append(errs, err)
			for _, entry := range entries {
				errs = append(errs, fmt.Errorf("pool %s: %s/%s is left", pool, folder, entry.Name()))
			}
		}
	}
	return errors.Join(errs...)
}

// within reports whether a clean path is below another.
func within(path, base string) bool { return strings.HasPrefix(path, base+"/") }
