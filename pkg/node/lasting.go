package node

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/background"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
)

// Some work of a staging takes longer than a call may: mkfs on a slow disk, the check of a large filesystem, a walk
// over millions of files. It is done as a work of package background, one for a volume at a time, and outlives the
// call. Until it has ended the volume is not staged in another way, published or taken down, and its device stays open,
// so that neither the device nor its name becomes another volume's.

// mostLasting is how many works go on at the same time: more than a node has volumes, so that those that hang do not
// keep others from being begun.
const mostLasting = 1024

// Close tells what goes on in the background to end, and waits for that until the context ends. What is cut short goes
// on with the next Stage. Kinds: Busy when something has not ended.
func (s *Service) Close(ctx context.Context) error { return s.works.Close(ctx) }

// awaitWork waits for the work that an earlier call began. When that failed, what the earlier call made goes with
// this call's failure. The phases after it look at what came of a success, or ask for the same work and are told.
func (st *staging) awaitWork(ctx context.Context) error {
	old := st.record.Staged
	st.unfinished = old != nil && old.Pending && len(st.record.Published) == 0
	err := st.service.works.Wait(ctx, st.request.Volume)
	if _, refused := errors.AsType[growthRefused](err); refused {
		err = nil // The phase that grows asks again, and knows another way.
	}
	if err != nil && st.unfinished && !st.worked() {
		st.want, st.begun = *old, true
	}
	return err
}

// forgetWork forgets the outcome of work of which no phase asked: it says nothing once the volume is used, or taken
// down and perhaps used elsewhere.
func (st *staging) forgetWork(ctx context.Context) error {
	return st.service.works.Stop(ctx, st.request.Volume)
}

// worked reports whether the volume is being worked on.
func (st *staging) worked() bool { return st.service.works.Running(st.request.Volume) }

// endWork ends what is done to a volume that is to be taken down. Kinds: Busy when it has not ended by the end of the
// context.
func (un *unstaging) endWork(ctx context.Context) error {
	return un.service.works.Stop(ctx, un.record.Volume)
}

// onDevice does work on the device that was proven, held open meanwhile, and waits for its end or that of the context.
func (st *staging) onDevice(ctx context.Context, name string,
	do func(context.Context, *os.File) (filesystem.Found, error)) (filesystem.Found, error) {
	held, err := duplicate(st.device.File)
	if err != nil {
		return filesystem.Found{}, err
	}
	path, tools := st.device.Path, st.service.tools
	return st.service.works.Do(ctx, background.Work{
		Key: st.request.Volume, Name: name + " " + path, Holds: held,
		Progress: func() string { return tools.Progress(path) },
	}, func(ctx context.Context) (filesystem.Found, error) { return do(ctx, held) })
}

// duplicate returns a descriptor of its own for an open file.
func duplicate(file *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, backends.Errorf(backends.Unavailable, "holding %s: %w", file.Name(), err)
	}
	return os.NewFile(uintptr(fd), file.Name()), nil
}
