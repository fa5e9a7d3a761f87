package sample

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/durable"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// volume is kept in its record, without Access, which is the same for all, and without the unexported fields.
type volume struct {
	backends.Volume
	damage error // why it cannot be used
	used   bool  // between Source and Release
	hidden bool  // Delete has begun
}

// Create creates an empty volume.
func (b *backend) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.unlock()
	// Check the name first: a caller that retries must learn that the volume exists.
	if _, err := b.find(spec.Name); err == nil {
		return nil, backends.Errorf(backends.Exists, "there is a volume %q already", spec.Name)
	} else if !backends.Is(err, backends.NotFound) {
		return nil, err
	}
	if err := access().Check(spec.Access); err != nil {
		return nil, err
	}
	size, err := spec.Capacity.Round(1<<30, 1<<20, 1<<20) // by default 1 GiB, in steps of 1 MiB
	if err != nil {
		return nil, err
	}
	// A handle is never used again. Its first half keeps the name of a volume whose record cannot be read.
	v := &volume{Volume: backends.Volume{Handle: prefix(spec.Name) + rand.Text(), Name: spec.Name, CapacityBytes: size,
		Fingerprint: spec.Fingerprint, Settings: maps.Clone(spec.Settings)}}
	if err := b.draft(v); err != nil {
		_ = b.erase(ctx, v.Handle) // Otherwise the next process erases it.
		return nil, backends.Errorf(backends.KindOf(err), "the volume cannot be written: %w", err)
	}
	b.volumes[v.Handle] = v
	// If the rename fails, only the next process knows whether the volume is there. Until then, its name is taken.
	if v.damage = b.move(v.Handle, ".part", ".json"); v.damage != nil {
		return nil, backends.Errorf(backends.Unavailable, "the volume may or may not be there: %w", v.damage)
	}
	return v.describe(), nil
}

// draft creates the files of a volume that does not exist yet.
func (b *backend) draft(v *volume) error {
	text, err := json.Marshal(v)
	if err == nil {
		err = durable.WriteNew(b.file(v.Handle, ".part"), text)
	}
	if err == nil {
		err = durable.MakeAll(b.file(v.Handle, ""), 0o755)
	}
	return err
}

// Find returns the volume of the spec's name.
func (b *backend) Find(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.unlock()
	return b.find(spec.Name)
}

func (b *backend) find(name string) (*backends.Volume, error) {
	for handle, v := range b.volumes {
		if strings.HasPrefix(handle, prefix(name)) && !v.hidden {
			return b.get(handle)
		}
	}
	return nil, backends.Errorf(backends.NotFound, "there is no volume %q", name)
}

// Get returns the volume with the handle.
func (b *backend) Get(ctx context.Context, handle string) (*backends.Volume, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.unlock()
	return b.get(handle)
}

func (b *backend) get(handle string) (*backends.Volume, error) {
	switch v := b.volumes[handle]; {
	case v == nil || v.hidden:
		return nil, backends.Errorf(backends.NotFound, "there is no volume with the handle %q", handle)
	case v.damage != nil:
		return nil, backends.Errorf(backends.Unusable, "the record of volume %q cannot be used: repair %s, then restart "+
			"the driver: %w", handle, b.file(handle, ".json"), v.damage)
	default:
		return v.describe(), nil
	}
}

// Delete removes a volume. It begins with a rename, which needs no room. A retry continues what a failed call began.
func (b *backend) Delete(ctx context.Context, handle string) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.unlock()
	v := b.volumes[handle]
	switch _, err := b.get(handle); {
	case v != nil && v.used:
		return backends.Errorf(backends.InUse, "volume %q is in use on this node: unmount it first", handle)
	case v != nil && v.hidden:
	case err != nil:
		return err
	default:
		if err := b.move(handle, ".json", ".part"); err != nil {
			return backends.Errorf(backends.Unavailable, "volume %q is not deleted: %w", handle, err)
		}
	}
	v.hidden = true
	if err := b.erase(ctx, handle); err != nil {
		return backends.Errorf(backends.Unavailable, "the data of volume %q is still there: %w", handle, err)
	}
	delete(b.volumes, handle)
	return nil
}

// erase removes the files of a volume that is hidden or was never there.
func (b *backend) erase(ctx context.Context, handle string) error {
	if err := tree.Remove(ctx, b.file(handle, "")); err != nil {
		return err
	}
	if err := os.Remove(b.file(handle, ".part")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (b *backend) move(handle, from, to string) error {
	if err := durable.MoveNew(b.file(handle, from), b.file(handle, to)); err != nil {
		return err
	}
	return durable.SyncDir(b.root)
}

// lock waits for the end of other calls, but no longer than the request.
func (b *backend) lock(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		select {
		case b.turn <- struct{}{}:
			return nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return backends.Errorf(backends.Unavailable, "the request has ended before its turn: %w", err)
}

func (b *backend) unlock() { <-b.turn }

// describe returns a value that shares no memory with the backend.
func (v *volume) describe() *backends.Volume {
	described := v.Volume
	described.Access, described.Settings = access(), maps.Clone(v.Settings)
	return &described
}

func prefix(name string) string { return fmt.Sprintf("%x-", sha256.Sum256([]byte(name))) }

func access() backends.Access {
	return backends.Access{Types: []backends.AccessType{backends.Mount}, Modes: backends.SingleNodeModes(),
		Mountable: mountoptions.Directory{}}
}
