package trim

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Volume is a volume that is trimmed at intervals.
type Volume struct {
	Name       string
	Filesystem Filesystem
	Interval   time.Duration
}

// Schedule trims volumes when they are due, one at a time, because trimming loads the storage that they share. A volume
// whose device does not answer does not block the others.
type Schedule struct {
	marks   marks
	log     *slog.Logger
	trim    func(ctx context.Context, fs Filesystem, answered func()) (trimmed uint64, err error)
	trimmed func(bytes uint64)

	mu      sync.Mutex
	volumes map[string]*entry
	paused  map[string]int  // number of pauses
	running map[string]*run // by the volume's name
}

// entry is the state of a volume.
type entry struct {
	Volume
	due    time.Time
	unable bool // cannot be trimmed
}

// retry is the longest time after a failure until a volume is due again.
const retry = time.Hour

// NewSchedule returns an empty schedule. It notes in a directory when volumes were trimmed, so that the schedule
// survives a restart. The function trimmed, unless nil, is called after each trim.
func NewSchedule(dir string, log *slog.Logger, trimmed func(bytes uint64)) *Schedule {
	if trimmed == nil {
		trimmed = func(uint64) {}
	}
	return &Schedule{marks: marks{dir}, log: log, trim: Mounted, trimmed: trimmed, volumes: map[string]*entry{},
		paused: map[string]int{}, running: map[string]*run{}}
}

// Set puts a volume on the schedule, or updates it. A volume that was never trimmed is due at its own time within the
// interval, so that volumes that arrive together are not due together.
func (s *Schedule) Set(v Volume, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.volumes[v.Name]; ok && known.Volume == v {
		return
	}
	last, ok := s.marks.read(v.Name)
	if !ok || last.After(now) {
		last = now.Add(spread(v.Name, v.Interval) - v.Interval)
		s.note(v.Name, last)
	}
	s.volumes[v.Name] = &entry{Volume: v, due: last.Add(v.Interval)}
}

// Drop removes a volume from the schedule. The time of its last trim is kept.
func (s *Schedule) Drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.volumes, name)
}

// Pause keeps a volume from being trimmed until resume is called. It returns once nothing is open on the volume. Kinds:
// Unavailable when the context ended first.
func (s *Schedule) Pause(ctx context.Context, name string) (resume func(), err error) {
	s.mu.Lock()
	s.paused[name]++
	var done chan struct{}
	if r := s.running[name]; r != nil {
		r.cancel()
		done = r.done
	}
	s.mu.Unlock()
	resume = sync.OnceFunc(func() { s.resume(name) })
	if done == nil {
		return resume, nil
	}
	select {
	case <-done:
		return resume, nil
	case <-ctx.Done():
		resume()
		return nil, backends.Errorf(backends.Unavailable,
			"its filesystem is being trimmed, and the device has not answered yet: %w", ctx.Err())
	}
}

func (s *Schedule) resume(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused[name]--; s.paused[name] == 0 {
		delete(s.paused, name)
	}
}

// Run trims the volumes that are due at each tick, until the context ends.
func (s *Schedule) Run(ctx context.Context, ticks <-chan time.Time) {
	for {
		select {
		case now := <-ticks:
			s.Due(ctx, now)
		case <-ctx.Done():
			return
		}
	}
}

// Due trims the volumes that are due, one after the other. If a device does not answer, it continues with the next
// volume. It must not be called concurrently.
func (s *Schedule) Due(ctx context.Context, now time.Time) {
	for ctx.Err() == nil {
		r := s.begin(ctx, now)
		if r == nil {
			return
		}
		go func() {
			bytes, err := s.trim(r.ctx, r.Filesystem, r.answer)
			s.ended(r, now, bytes, err)
		}()
		if !r.await() {
			s.log.WarnContext(ctx, "trimming goes on with other volumes: a device has not answered",
				"volume", r.Name, "path", r.Filesystem.Path, "for", patience)
		}
	}
}

// begin starts a run of the volume that has been due for longest; nil if none is due.
func (s *Schedule) begin(ctx context.Context, now time.Time) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	var next *entry
	for name, e := range s.volumes {
		isFree := s.paused[name] == 0 && s.running[name] == nil
		if isFree && !e.unable && !e.due.After(now) && (next == nil || e.due.Before(next.due)) {
			next = e
		}
	}
	if next == nil {
		return nil
	}
	next.due = now.Add(min(next.Interval, retry)) // unless it succeeds
	r := newRun(ctx, next.Volume)
	s.running[next.Name] = r
	return r
}

// ended records and reports the end of a run. Nothing is open any more.
func (s *Schedule) ended(r *run, now time.Time, bytes uint64, err error) {
	log := s.log.With("volume", r.Name, "path", r.Filesystem.Path, "bytes", bytes)
	s.trimmed(bytes)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer r.end()
	delete(s.running, r.Name)
	e := s.volumes[r.Name]
	switch {
	case e == nil || e.Volume != r.Volume:
		log.InfoContext(r.ctx, "trimming ended with the volume", "error", err)
	case err == nil:
		e.due = now.Add(r.Interval)
		s.note(r.Name, now)
		log.InfoContext(r.ctx, "trimmed", "next", e.due)
	case backends.Is(err, backends.Unsupported):
		e.unable = true
		log.WarnContext(r.ctx, "the class asks for trimming, and the filesystem or its device cannot be trimmed: it is not "+
			"tried again until the volume is staged anew", "error", err)
	case s.paused[r.Name] > 0:
		e.due = now
		log.InfoContext(r.ctx, "trimming was interrupted, to be taken up again", "error", err)
	default:
		log.WarnContext(r.ctx, "trimming failed", "error", err, "next", e.due)
	}
}

// note stores when a volume was trimmed. If that fails, the volume is only trimmed again too early.
func (s *Schedule) note(name string, at time.Time) {
	if err := s.marks.write(name, at); err != nil {
		s.log.Warn("cannot note when a volume was trimmed", "volume", name, "error", err)
	}
}
