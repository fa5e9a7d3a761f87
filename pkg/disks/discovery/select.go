package discovery

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/deadline"
)

// selected is a device or mount that a rule selects.
type selected struct {
	block    *block
	part     *block   // a partition of it that is also selected
	mount    *mounted // nil for a device
	notBlank bool     // it may be offered with data
}

// selectDevices returns the devices that the rules select.
func selectDevices(rules []DeviceRule, all []*block) ([]selected, error) {
	var found []selected
	taken := map[uint64]bool{}
	for _, rule := range rules {
		numbers, err := leadTo(rule.Paths, all)
		if err != nil {
			return nil, err
		}
		for _, b := range all {
			if numbers[b.number()] && !taken[b.number()] && rule.selects(b) {
				taken[b.number()] = true
				found = append(found, selected{block: b, notBlank: rule.NotBlank})
			}
		}
	}
	return parted(found), nil
}

// parted notes for each disk which of its partitions is also selected.
func parted(found []selected) []selected {
	parts := map[uint64]*block{}
	for _, s := range found {
		if s.block.disk != nil {
			parts[s.block.disk.number()] = s.block
		}
	}
	for i := range found {
		found[i].part = parts[found[i].block.number()]
	}
	return found
}

// leadTo returns the numbers of the devices whose nodes match the patterns, directly or over links.
func leadTo(patterns []string, all []*block) (map[uint64]bool, error) {
	numbers := map[uint64]bool{}
	for _, pattern := range patterns {
		for _, b := range all {
			if ok, _ := path.Match(pattern, b.node()); ok { // The pattern was checked.
				numbers[b.number()] = true
			}
		}
		paths, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("find %q: %w", pattern, err)
		}
		for _, p := range paths {
			var stat unix.Stat_t
			if err := unix.Stat(p, &stat); err == nil && stat.Mode&unix.S_IFMT == unix.S_IFBLK {
				numbers[stat.Rdev] = true
			}
		}
	}
	return numbers, nil
}

func (r DeviceRule) selects(b *block) bool {
	model := func(pattern string) bool { ok, _ := path.Match(pattern, b.model); return ok }
	switch {
	case b.partition > 0 && !r.Partitions, !r.allow(b.size):
		return false
	case r.Rotational != nil && *r.Rotational != b.rotational:
		return false
	case len(r.Transports) > 0 && !slices.Contains(r.Transports, b.transport):
		return false
	}
	return len(r.Models) == 0 || slices.ContainsFunc(r.Models, model)
}

// selectMounts returns the mounts that the rules select. All are measured at once, so that one that does not answer
// delays no other one for long. It is selected too, with that as its problem.
func selectMounts(ctx context.Context, rules []MountRule, all []*mounted) []selected {
	var measured sync.WaitGroup
	rule := map[*mounted]MountRule{}
	for _, m := range all {
		i := slices.IndexFunc(rules, func(r MountRule) bool { return r.selects(m.Mountpoint) })
		if i < 0 {
			continue
		}
		rule[m] = rules[i]
		measured.Go(func() { m.measure(ctx) })
	}
	measured.Wait()
	var found []selected
	for _, m := range all {
		if r, is := rule[m]; is && (m.problem != nil || r.allow(m.size)) {
			found = append(found, selected{mount: m, notBlank: r.NotBlank})
		}
	}
	return found
}

// measure sets the size of the mounted filesystem, or the problem if it does not answer in time.
func (m *mounted) measure(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	at := m.Mountpoint
	stat, err := deadline.Do(ctx, deadline.Call{Name: "measuring the filesystem at " + at},
		func(context.Context) (stat unix.Statfs_t, err error) {
			if err = unix.Statfs(at, &stat); err != nil {
				err = &os.PathError{Op: "statfs", Path: at, Err: err}
			}
			return stat, err
		}, nil)
	m.size, m.problem = int64(stat.Blocks)*stat.Bsize, err
}

func (r MountRule) selects(at string) bool {
	return slices.ContainsFunc(r.Paths, func(pattern string) bool { ok, _ := path.Match(pattern, at); return ok })
}
