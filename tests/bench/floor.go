package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// floor holds the bare costs of the parts of a lifecycle in a pool on this machine.
type floor struct {
	pool   string
	dir    string
	socket string
	fsType string
	size   int64

	call       series // an empty RPC over a unix socket to another process
	folder     series
	bindMount  series
	bindTree   series
	record     series
	imageFile  series
	loop       series
	mkfs       series
	filesystem series
}

// The number of samples of each part in a call of measure.
const (
	callRounds   = 200
	folderRounds = 50
	bindRounds   = 30
	recordRounds = 10
	imageRounds  = 2
)

func newFloor(opts options, pool, dir string) *floor {
	return &floor{
		pool: pool, dir: floorPath(dir), socket: floorSocket(dir), fsType: opts.fsType, size: int64(opts.size),
		call:       series{name: "empty gRPC call over a unix socket"},
		folder:     series{name: "mkdir + rmdir"},
		bindMount:  series{name: "bind mount + umount, by mount(2)"},
		bindTree:   series{name: "bind mount + umount, by open_tree and move_mount"},
		record:     series{name: "durable record: write, fsync, rename, fsync of the directory"},
		imageFile:  series{name: "sparse image file: create + unlink"},
		loop:       series{name: "loop device: attach + detach"},
		mkfs:       series{name: "mkfs." + opts.fsType + ", exec"},
		filesystem: series{name: opts.fsType + " mount + umount"},
	}
}

// measure adds samples to every series that is relevant for the pool.
func (f *floor) measure(ctx context.Context) error {
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		return err
	}
	for _, part := range []func(context.Context) error{f.measureCalls, f.measureFolders, f.measureBinds, f.measureRecords,
		f.measureImages} {
		if err := part(ctx); err != nil {
			return fmt.Errorf("measuring the floor: %w", err)
		}
	}
	return os.RemoveAll(f.dir)
}

// repeat calls f with 0 to n-1 until it fails or the context ends.
func repeat(ctx context.Context, n int, f func(i int) error) error {
	for i := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f(i); err != nil {
			return err
		}
	}
	return nil
}

func (f *floor) measureFolders(ctx context.Context) error {
	path := filepath.Join(f.dir, "folder")
	return repeat(ctx, folderRounds, func(int) error {
		return f.folder.time(func() error {
			if err := unix.Mkdir(path, 0o700); err != nil {
				return os.NewSyscallError("mkdir", err)
			}
			return os.NewSyscallError("rmdir", unix.Rmdir(path))
		})
	})
}

// measureRecords writes records under new names, as for each new volume.
func (f *floor) measureRecords(ctx context.Context) error {
	folder, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	text := make([]byte, 512)
	err = repeat(ctx, recordRounds, func(i int) error {
		path := filepath.Join(f.dir, fmt.Sprintf("record-%d", i))
		return f.record.time(func() error { return writeRecord(folder, path, text) })
	})
	if e := folder.Close(); err == nil {
		err = e
	}
	return err
}

func writeRecord(folder *os.File, path string, text []byte) error {
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = file.Write(text); err == nil {
		err = file.Sync()
	}
	if e := file.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	return folder.Sync()
}
