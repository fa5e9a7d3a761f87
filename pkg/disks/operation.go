package disks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/disks/discovery"
	"github.com/stowage-csi/stowage/pkg/disks/method"
	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/pkg/disks/wipe"
	"github.com/stowage-csi/stowage/pkg/node/device"
)

// operation is a deletion under way.
type operation struct {
	note    *operationNote
	cancel  context.CancelFunc
	failure string // of the last attempt
	begun   bool   // data were changed, or are about to be
	left    string // the contents of a device after a wipe that changes nothing
}

// begin starts operations that are wanted and not complete, and stops those no longer wanted. The lock is held.
func (e *Engine) begin() {
	if e.life == nil || e.life.Err() != nil { // Run begins with what is wanted then, and nothing begins at its end.
		return
	}
	for id, o := range e.active {
		if !e.isWanted(id) {
			o.cancel()
		}
	}
	for _, d := range e.wanted.Deletions {
		note := e.operations[d.ID]
		if note.Complete || e.active[d.ID] != nil || e.wipes(d.Volume) {
			continue
		}
		ctx, cancel := context.WithCancel(e.life)
		o := &operation{note: note, cancel: cancel}
		e.active[d.ID] = o
		e.running.Go(func() { e.run(ctx, o) })
	}
}

// wipes reports whether another deletion of the volume is still at work. The lock is held.
func (e *Engine) wipes(volume string) bool {
	for _, o := range e.active {
		if o.note.Volume == volume {
			return true
		}
	}
	return false
}

// run retries a deletion until it is complete or no longer wanted, with growing pauses.
func (e *Engine) run(ctx context.Context, o *operation) {
	defer o.cancel()
	for pause := e.options.FirstPause; ; pause = min(2*pause, e.options.LastPause) {
		err := e.attempt(ctx, o)
		if err == nil {
			err = e.complete(o)
		}
		e.mu.Lock()
		o.failure = ""
		if err != nil && ctx.Err() == nil {
			o.failure = err.Error()
			e.options.Log.Warn("a volume was not wiped", "volume", o.note.Volume, "deletion", o.note.ID, "again", pause, "error",
				err)
		}
		over := err == nil || ctx.Err() != nil
		if over {
			delete(e.active, o.note.ID)
			e.begin() // Another deletion of the volume may wait.
		}
		e.change()
		e.mu.Unlock()
		if over {
			e.look()
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// complete notes that the volume is clean, then that the deletion is complete. After a crash in between the volume is
// wiped again.
func (e *Engine) complete(o *operation) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.isWanted(o.note.ID) {
		return fmt.Errorf("the deletion %s of volume %s was withdrawn while it was carried out", o.note.ID, o.note.Volume)
	}
	clean := &volumeNote{Offer: o.note.Offer, Wiped: o.note.Method, Left: o.left}
	if v := e.volumes[o.note.Volume]; v != nil && v.Offer != o.note.Offer {
		return fmt.Errorf("volume %s was offered again as %s while it was wiped", o.note.Volume, v.Offer)
	}
	if err := e.notes.write(volumesFolder, o.note.Volume, clean); err != nil {
		return err
	}
	e.volumes[o.note.Volume] = clean
	done := *o.note
	done.Complete = true
	if err := e.notes.write(operationsFolder, done.ID, &done); err != nil {
		return err
	}
	*o.note = done
	e.options.Log.Info("a volume was wiped", "volume", done.Volume, "deletion", done.ID, "method", done.Method)
	return nil
}

// attempt wipes the volume.
func (e *Engine) attempt(ctx context.Context, o *operation) error {
	v, err := e.locate(ctx, o.note.Volume)
	if err != nil {
		return err
	}
	if v.Mode == report.Filesystem {
		return e.wipeTree(ctx, o, v)
	}
	return e.wipeDevice(ctx, o, v)
}

// locate finds the volume as it is now: its earlier device may be another disk by now.
func (e *Engine) locate(ctx context.Context, name string) (report.Volume, error) {
	found, err := e.options.Config.Find(ctx, func(string) discovery.History { return discovery.History{Taken: true} })
	if err != nil {
		return report.Volume{}, err
	}
	i := slices.IndexFunc(found, func(v report.Volume) bool { return v.Name == name })
	if i < 0 {
		return report.Volume{}, fmt.Errorf("volume %s is not there: its disk was taken away, its filesystem is not mounted, "+
			"or the configuration selects it no more%s", name, nameless(found))
	}
	if found[i].State == report.Unusable {
		return report.Volume{}, fmt.Errorf("volume %s (%s) is not usable: %s", name, found[i].Device, found[i].Message)
	}
	return found[i], nil
}

// nameless lists the devices whose volumes are unknown: a device that does not answer may be any volume.
func nameless(found []report.Volume) (text string) {
	for _, v := range found {
		if v.State == report.Unusable && v.Identity == discovery.NoIdentity {
			text += fmt.Sprintf("; %s may be it: %s", v.Device, v.Message)
		}
	}
	return text
}

// wipeDevice wipes an unused device, after proving on the open device that it is the volume.
func (e *Engine) wipeDevice(ctx context.Context, o *operation, v report.Volume) error {
	f, err := open(ctx, v, func(ctx context.Context) (*os.File, error) {
		return discovery.OpenAlone(ctx, v.Device, os.O_RDWR)
	})
	if err != nil {
		return fmt.Errorf("volume %s (%s) cannot be wiped: %w", v.Name, v.Device, err)
	}
	defer func() { _ = f.Close() }() // What was written was synced.
	size, err := device.SizeOf(f)
	if err != nil {
		return err
	}
	if size != v.SizeBytes {
		return fmt.Errorf("volume %s (%s) has %d bytes, and had %d when it was found just now: its disk goes or grows",
			v.Name, v.Device, size, v.SizeBytes)
	}
	if err := prove(f, v); err != nil {
		return err
	}
	others, err := e.sharing(ctx, f, v)
	if err != nil {
		return err
	}
	if err := e.isApart(v, others); err != nil {
		return err
	}
	if err := e.touch(o, size, o.note.Position); err != nil {
		return err
	}
	d := wipe.Device{File: f, SizeBytes: size, Note: func(position int64) error {
		if err := e.isApart(v, others); err != nil {
			return err
		}
		return e.progress(o, size, position)
	}}
	err = o.wipe(ctx, d)
	if err != nil && ctx.Err() == nil { // After any error the next attempt starts over.
		err = errors.Join(err, e.progress(o, size, 0))
	}
	return err
}

// wipe wipes a device, and remembers the contents after a wipe that changes nothing.
func (o *operation) wipe(ctx context.Context, d wipe.Device) error {
	err := d.Wipe(ctx, o.note.Method, o.note.Position)
	if err == nil && o.note.Method == method.None {
		o.left, err = discovery.Contents(ctx, d.File, d.SizeBytes)
	}
	return err
}

// open opens a volume, or gives up: the deletion of a volume that does not answer reports that.
func open(ctx context.Context, v report.Volume, work func(context.Context) (*os.File, error)) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, discovery.Patience)
	defer cancel()
	return deadline.Do(ctx, deadline.Call{Name: "opening " + v.Device}, work, func(f *os.File) { _ = f.Close() })
}

// prove checks that an open device is the volume.
func prove(f *os.File, v report.Volume) error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return fmt.Errorf("look at %s: %w", v.Device, err)
	}
	identity, err := discovery.IdentityOf(unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
	if err != nil {
		return err
	}
	if discovery.NameOf(identity) != v.Name {
		return fmt.Errorf("%s is another disk than volume %s: it reports %s, the volume is %s", v.Device, v.Name, identity,
			v.Identity)
	}
	return nil
}

// wipeTree empties a filesystem that is mounted where the volume was found.
func (e *Engine) wipeTree(ctx context.Context, o *operation, v report.Volume) error {
	var below []string // read only if the call below has ended
	dir, err := open(ctx, v, func(ctx context.Context) (*os.File, error) {
		dir, err := discovery.OpenMount(ctx, v.Path, v.Identity)
		if err != nil {
			return nil, err
		}
		if below, err = discovery.Below(v.Path); err != nil {
			_ = dir.Close() // open for reading only
			return nil, err
		}
		return dir, nil
	})
	if err != nil {
		return fmt.Errorf("volume %s cannot be emptied: %w", v.Name, err)
	}
	defer func() { _ = dir.Close() }() // open for reading only
	if err := e.isApart(v, below); err != nil {
		return err
	}
	if err := e.touch(o, 0, 0); err != nil || o.note.Method == method.None {
		return err
	}
	return wipe.Tree(ctx, dir)
}

// progress notes the position of a wipe. If the size of the device has changed, the position is 0.
func (e *Engine) progress(o *operation, size, position int64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	note := *o.note
	if note.SizeBytes != size {
		position = 0
	}
	before := wipe.Percent(note.Method, note.Position, size)
	note.SizeBytes, note.Position = size, position
	if err := e.notes.write(operationsFolder, note.ID, &note); err != nil {
		return err
	}
	*o.note = note
	if !o.begun || o.failure != "" || wipe.Percent(note.Method, position, size) != before {
		o.begun, o.failure = true, ""
		e.change()
	}
	return nil
}

// deletion returns the state of a deletion. The lock is held.
func (e *Engine) deletion(d report.Deletable) report.Deletion {
	note, o := e.operations[d.ID], e.active[d.ID]
	told := report.Deletion{ID: d.ID, Volume: d.Volume, State: report.Requested}
	told.Progress = wipe.Percent(note.Method, note.Position, note.SizeBytes)
	switch {
	case note.Complete:
		told.State, told.Progress = report.Complete, 100
	case o != nil && o.failure != "":
		told.State, told.Message = report.Failed, o.failure
	case o != nil && o.begun:
		told.State = report.InProgress
	}
	return told
}
