package chaos

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// point is a call that can fail.
type point struct {
	number int // from 1, in the order of an undisturbed run
	call
	nth int // the number of earlier points with the same label
}

func (p point) String() string {
	return fmt.Sprintf("#%d %s, occurrence %d", p.number, p.label(), p.nth+1)
}

// listing collects the points of an undisturbed run.
type listing struct {
	points []point
	seen   map[string]int
}

func (l *listing) plan(c call) action {
	if l.seen == nil {
		l.seen = map[string]int{}
	}
	l.points = append(l.points, point{number: len(l.points) + 1, call: c, nth: l.seen[c.label()]})
	l.seen[c.label()]++
	return action{}
}

// labels returns the labels, which two undisturbed runs must have in common.
func labels(points []point) []string {
	list := make([]string, len(points))
	for i, p := range points {
		list[i] = p.label()
	}
	return list
}

// common returns the points that also occur in another run.
func common(points, again []point) []point {
	there := map[string]int{}
	for _, p := range again {
		there[p.label()]++
	}
	return slices.DeleteFunc(points, func(p point) bool { return p.nth >= there[p.label()] })
}

// thin keeps all points of the driver, and for each command its start, its end and as many writes as most says, evenly
// spaced.
func thin(points []point, most int) []point {
	writes := map[int]int{}
	for _, p := range points {
		if p.command != "" && p.write {
			writes[p.group]++
		}
	}
	var kept []point
	seen := map[int]int{}
	for _, p := range points {
		if p.command != "" && p.write {
			n, total := seen[p.group], writes[p.group]
			seen[p.group]++
			if total > most && n*most/total == (n-1)*most/total && n > 0 {
				continue
			}
		}
		kept = append(kept, p)
	}
	return kept
}

// faultKind is a kind of fault.
type faultKind string

const (
	killDriver  faultKind = "kill of the driver"
	killBoth    faultKind = "kill of driver and command"
	killCommand faultKind = "kill of the command"
	failure     faultKind = "error"
	timeout     faultKind = "time-out"
)

// fault is a fault at a point.
type fault struct {
	point point
	kind  faultKind
	errno unix.Errno
}

func (f fault) String() string {
	if f.kind == failure {
		return fmt.Sprintf("%s: %s", f.point, unix.ErrnoName(f.errno))
	}
	return fmt.Sprintf("%s: %s", f.point, f.kind)
}

// hash makes choices evenly distributed and repeatable.
func (f fault) hash(seed uint64) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, seed, f.String()) // a hash never fails
	return h.Sum64()
}

// faultsAt lists all faults of a point.
func faultsAt(p point) []fault {
	kinds := []faultKind{killDriver}
	if p.command != "" {
		kinds = append(kinds, killBoth, killCommand)
	}
	if p.mayHang() {
		kinds = append(kinds, timeout)
	}
	var faults []fault
	for _, kind := range kinds {
		faults = append(faults, fault{point: p, kind: kind})
	}
	for _, errno := range p.errnos() {
		faults = append(faults, fault{point: p, kind: failure, errno: errno})
	}
	return faults
}

// errnos returns the errors that a call can be made to fail with. Waiting for a process's own child fails only with
// EINTR. A program's exit and the return of a held lease cannot fail.
func (p point) errnos() []unix.Errno {
	switch p.name {
	case "exit_group", "kill", "pidfd_send_signal":
		return nil
	case "fcntl":
		if strings.HasSuffix(p.args, leaseReturned) {
			return nil
		}
	case "wait4", "waitid":
		return []unix.Errno{unix.EINTR}
	}
	return []unix.Errno{unix.EIO, unix.ENOSPC, unix.EBUSY, unix.EINTR, unix.ETIMEDOUT}
}

// Arguments that identify calls that may hang.
const (
	fsconfigCreate = ", 0x6, " // FSCONFIG_CMD_CREATE
	loopRequest    = ", 0x4c"  // LOOP_*
	leaseReturned  = ", 0x2"   // F_SETLEASE, F_UNLCK
)

// mayHang reports whether the kernel may block in the call for any length of time.
func (p point) mayHang() bool {
	switch p.name {
	case "fsconfig":
		return strings.Contains(p.args, fsconfigCreate)
	case "ioctl":
		return p.command == "" && strings.Contains(p.args, loopRequest)
	case "umount2", "fsync", "execve":
		return true
	}
	return false
}

// action returns the tracer's action for a fault.
func (f fault) action() action {
	switch f.kind {
	case killDriver:
		return action{kill: []target{theVictim}}
	case killBoth:
		return action{kill: []target{theVictim, theCommand}}
	case killCommand:
		return action{kill: []target{theCommand}}
	case timeout:
		return action{hold: true}
	case failure:
	}
	return action{errno: f.errno}
}

// trap is the plan that makes one fault happen.
type trap struct {
	fault
	seen int
	met  bool
}

func (t *trap) plan(c call) action {
	if t.met || c.label() != t.point.label() {
		return action{}
	}
	t.seen++
	if t.seen <= t.point.nth {
		return action{}
	}
	t.met = true
	return t.action()
}
