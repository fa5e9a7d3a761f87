package attached

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/deadline"
)

// patience is the time limit of a device's answer. Within it, a device of one's own answers on a busy machine too:
// otherwise a search would miss it.
const patience = 10 * time.Second

// Status asks a loop device for its backing file.
//
// Errors: an fs.PathError when the device cannot be opened, ENXIO when it holds nothing, ENOTCONN when the server of
// its file is gone, and of Kind Unavailable when it does not answer in time.
func Status(device string) (*unix.LoopInfo64, error) {
	return inTime(device, func(context.Context) (*unix.LoopInfo64, error) { return status(device) })
}

// Name returns the name by which the file of a loop device was attached, of which the kernel keeps 63 bytes (loop(4)).
// It identifies a file whose filesystem is mounted nowhere any more: then the path in sysfs is only relative to that
// filesystem. If the path exists here, the name is empty, and the device is not asked.
//
// Errors: as of Status, and those of looking up the path.
func Name(device, path string) (string, error) {
	return inTime(device, func(context.Context) (string, error) {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		info, err := status(device)
		if err != nil {
			return "", err
		}
		return unix.ByteSliceToString(info.File_name[:]), nil
	})
}

func inTime[T any](device string, ask func(context.Context) (T, error)) (T, error) {
	// Stimulus: a search for one's own devices waits for no server, however long that does not answer.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return deadline.Do(ctx, deadline.Call{Name: "asking " + device + " what it holds"}, ask, nil)
}

func status(device string) (*unix.LoopInfo64, error) {
	node, err := os.Open(device)
	if err != nil {
		return nil, err
	}
	defer func() { _ = node.Close() }() // It was only asked.
	return unix.IoctlLoopGetStatus64(int(node.Fd()))
}
