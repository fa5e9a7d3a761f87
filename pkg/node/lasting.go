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
// over millions of files. It is done by package background, one work at a time for a volume, and outlives the call.
// Until it has ended, the volume is not staged in another way, published or taken down. Its device stays open, so that
// neither the device nor its name is reused for another volume.

// mostLasting bounds the number of concurrent works. It exceeds the number of volumes on a node, so that works that
// hang do not keep others from starting.
const mostLasting = 1024

// Close tells the background work to end, and waits for that until the context ends. The next Stage resumes what was
// cut short. Kinds: Busy when something has not ended.
func (s *Service) Close(ctx context.Context) error { return s.works.Close(ctx) }

// awaitWork waits for the work that an earlier call began. If that work failed, this call fails too and takes down what
// the earlier call made. After a success, the later phases look at the outcome or ask for the same work and get its
// result.
func (st *staging) awaitWork(ctx context.Context) error {
	old := st.record.Staged
	st.unfinished = old != nil && old.Pending && len(st.record.Published) == 0
	err := st.service.works.Wait(ctx, st.request.Volume)
	if _, refused := errors.AsType[growthRefused](err); refused {
		err = nil // The phase that grows asks again, and has a fallback.
	}
	if err != nil && st.unfinished && !st.worked() {
		st.want, st.begun = *old, true
	}
	return err
}

// forgetWork drops the outcome of work that no phase asked for. It means nothing once the volume is used, or taken down
// and perhaps used elsewhere.
func (st *staging) forgetWork(ctx context.Context) error {
	return st.service.works.Stop(ctx, st.request.Volume)
}

// worked reports whether background work on the volume is under way.
func (st *staging) worked() bool { return st.service.works.Running(st.request.Volume) }

// endWork ends the background work on a volume that is to be taken down. Kinds: Busy when it has not ended by the end
// of the context.
func (un *unstaging) endWork(ctx context.Context) error {
	return un.service.works.Stop(ctx, un.record.Volume)
}

// onDevice does work on the proven device, which it holds open, and waits for the end of the work or of the context.
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

// duplicate returns a new descriptor for an open file.
func duplicate(file *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, backends.Errorf(backends.Unavailable, "holding %s: %w", file.Name(), err)
	}
	return os.NewFile(uintptr(fd), file.Name()), nil
}
