package leftovers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// MakeCgroups creates the group with the name, and those inside it, in every hierarchy.
func MakeCgroups(name string, inside []string) error {
	hierarchies, err := hierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range hierarchies {
		for _, group := range inside {
			if err := os.MkdirAll(filepath.Join(hierarchy, name, group), 0o755); err != nil {
				return fmt.Errorf("make control group: %w", err)
			}
		}
		if err := delegate(hierarchy, name); err != nil {
			return err
		}
	}
	return nil
}

// delegate lets groups inside the group use its controllers. Only version 2 must be told.
func delegate(hierarchy, name string) error {
	controllers, err := os.ReadFile(filepath.Join(hierarchy, "cgroup.controllers"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(controllers)) {
		for _, group := range []string{"", name} {
			path := filepath.Join(hierarchy, group, "cgroup.subtree_control")
			if err := os.WriteFile(path, []byte("+"+controller), 0o644); err != nil {
				return fmt.Errorf("delegate %s: %w", controller, err)
			}
		}
	}
	return nil
}

// Cgroups lists the folders of the group, and of those inside it, the innermost first.
func Cgroups(name string) ([]string, error) {
	hierarchies, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var list []string
	for _, hierarchy := range hierarchies {
		err := filepath.WalkDir(filepath.Join(hierarchy, name), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil // It disappeared during the walk.
			case err != nil:
				return err
			case entry.IsDir():
				list = append(list, path)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Reverse(list)
	return list, nil
}

// RemoveCgroups removes the group and those inside it, and kills the processes in them.
func RemoveCgroups(ctx context.Context, name string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := Cgroups(name)
		if err != nil || len(list) == 0 {
			return err
		}
		var errs []error
		for _, group := range list {
			errs = append(errs, removeCgroup(group))
		}
		if err = errors.Join(errs...); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

func removeCgroup(group string) error {
	err := unix.Rmdir(group)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	pids, readErr := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	for _, field := range strings.Fields(string(pids)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
			_ = unix.Kill(pid, unix.SIGKILL) // It may have just ended.
		}
	}
	return fmt.Errorf("remove %s: %w", group, err)
}

// hierarchies returns the folders of the control group hierarchies.
func hierarchies() ([]string, error) {
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return m.FSType != "cgroup" && m.FSType != "cgroup2", false
	})
	if err != nil {
		return nil, err
	}
	var list []string
	for _, m := range mounts {
		list = append(list, m.Mountpoint)
	}
	return list, nil
}
