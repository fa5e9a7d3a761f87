package attach

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/cloud/batch"
	"github.com/stowage-csi/stowage/pkg/cloud/wait"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// sim is a cloud with rules of its own: it takes time, shows changes late, and has faults while faulty is set. The test
// knows its true state.
type sim struct {
	lag    time.Duration // how late it shows changes
	back   bool          // it goes back in time: each look shows a random instant, up to lag ago
	ids    int           // attachments so far
	tick   time.Duration // the resolution of an attachment's ID, which is a time then; 0 if all IDs differ
	limit  int           // of attachments per node
	choosy bool          // every device name is refused
	waiter *wait.Waiter[string, Volume]

	mu      sync.Mutex
	random  *rand.Rand
	faulty  bool
	stuck   time.Duration // how long a stuck operation takes
	history map[string][]moment
	asked   map[string]int // requests that change something, by their text
	under   map[string]int // attachments under way, by node
	most    int            // the most of them on one node
	illegal []string       // requests that must never be sent
}

type moment struct {
	at time.Time
	v  Volume
}

func newSim(seed uint64) *sim {
	s := &sim{limit: 100, stuck: 30 * time.Second, random: rand.New(rand.NewPCG(seed, 4)), history: map[string][]moment{},
		asked: map[string]int{}, under: map[string]int{}}
	s.waiter = wait.New(wait.Options{Least: 200 * time.Millisecond, Most: 5 * time.Second, Typical: time.Second},
		s.describe)
	return s
}

func (s *sim) add(volume string, shared bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history[volume] = []moment{{time.Time{}, Volume{Shared: shared}}}
}

// truth is the true state of the volume.
func (s *sim) truth(volume string) Volume {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now(volume)
}

func (s *sim) now(volume string) Volume {
	h := s.history[volume]
	if len(h) == 0 {
		return Volume{}
	}
	return h[len(h)-1].v
}

func (s *sim) set(volume string, a Attachment) {
	v := s.now(volume)
	v.Attachments = slices.DeleteFunc(slices.Clone(v.Attachments), func(b Attachment) bool { return a.Node == b.Node })
	if a.State != "" {
		v.Attachments = append(v.Attachments, a)
	}
	s.history[volume] = append(s.history[volume], moment{time.Now(), v})
}

func (s *sim) describe(_ context.Context, volumes []string) ([]batch.Result[Volume], error) {
	time.Sleep(20 * time.Millisecond) //nolint:forbidigo // The clock is the test's own.
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faulty && s.random.IntN(8) == 0 {
		return nil, failure.Errorf(failure.Unavailable, "rate exceeded")
	}
	results := make([]batch.Result[Volume], len(volumes))
	for i, volume := range volumes {
		h, ok := s.history[volume]
		if !ok {
			results[i].Err = failure.Errorf(failure.NotFound, "there is no volume %q", volume)
			continue
		}
		lag := s.lag
		if s.back {
			lag = time.Duration(s.random.Int64N(int64(s.lag)))
		}
		for _, m := range h {
			if time.Since(m.at) >= lag {
				results[i].Value = m.v
			}
		}
	}
	return results, nil
}

func (s *sim) Look(ctx context.Context, volume string) (Volume, error) {
	results := batch.Each(ctx, []string{volume}, batch.Options{}, s.describe)
	return results[0].Value, results[0].Err
}

func (s *sim) Now(ctx context.Context, volume string) (Volume, error) {
	if _, err := s.Look(ctx, volume); err != nil {
		return Volume{}, err
	}
	return s.truth(volume), nil
}

func (s *sim) Wait(ctx context.Context, transition, volume string,
	until func(Volume, error) (bool, error)) (Volume, error) {
	return s.waiter.Until(ctx, transition, volume, until)
}

// send carries a request to the cloud and its answer back, either of which may be lost.
func (s *sim) send(ctx context.Context, what string, serve func() error) error {
	s.mu.Lock()
	s.asked[what]++
	fault := -1
	if s.faulty {
		fault = s.random.IntN(10)
	}
	s.mu.Unlock()
	time.Sleep(50 * time.Millisecond) //nolint:forbidigo // The clock is the test's own.
	lost := failure.Errorf(failure.Unavailable, "no answer to %s", what)
	switch fault {
	case 0:
		return lost
	case 1:
		return failure.Errorf(failure.Unavailable, "rate exceeded")
	case 2:
		s.mu.Lock()
		_ = serve()
		s.mu.Unlock()
		<-ctx.Done()
		return lost
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := serve()
	if fault == 3 {
		err = serve() // The request came twice.
	}
	return err
}

func (s *sim) Attach(ctx context.Context, volume, node, name string) (began time.Time, err error) {
	s.mu.Lock()
	if other, ok := s.now(volume).elsewhere(node); ok && s.lag == 0 && !s.now(volume).Shared {
		s.illegal = append(s.illegal, "attaching "+volume+" to "+node+" while it is "+string(other.State)+" to "+other.Node)
	}
	s.under[node]++
	s.most = max(s.most, s.under[node])
	s.mu.Unlock()
	defer func() { s.mu.Lock(); s.under[node]--; s.mu.Unlock() }()
	err = s.send(ctx, "attach "+volume+" to "+node, func() error {
		err := s.serveAttach(volume, node, name)
		began = time.Now()
		return err
	})
	return began, err
}

func (s *sim) serveAttach(volume, node, name string) error {
	v, ok := s.history[volume]
	here, isHere := s.now(volume).on(node)
	_, isElsewhere := s.now(volume).elsewhere(node)
	taken := s.names(node)
	switch {
	case !ok || len(v) == 0:
		return failure.Errorf(failure.NotFound, "there is no volume %q", volume)
	case isHere || isElsewhere && !s.now(volume).Shared:
		return failure.Errorf(failure.InUse, "volume %q is attached (%s)", volume, here.State)
	case slices.Contains(taken, name) || s.choosy:
		return failure.Errorf(failure.Invalid, "%q: %w", name, ErrNameTaken)
	case len(taken) >= s.limit:
		return failure.Errorf(failure.Exhausted, "node %q has %d disks", node, len(taken))
	}
	s.ids++
	a := Attachment{Node: node, Name: name, ID: fmt.Sprint(s.ids), State: Attaching, Began: time.Now()}
	if s.tick > 0 {
		a.ID = fmt.Sprint(time.Now().Truncate(s.tick).Unix())
	}
	s.set(volume, a)
	end := Attached
	if s.faulty && s.random.IntN(12) == 0 {
		end = ""
	}
	s.later(volume, a, end)
	return nil
}

func (s *sim) Detach(ctx context.Context, volume, node string) (age time.Duration, err error) {
	err = s.send(ctx, "detach "+volume+" from "+node, func() error {
		if len(s.history[volume]) == 0 {
			return failure.Errorf(failure.NotFound, "there is no volume %q", volume)
		}
		some := false
		for _, a := range s.now(volume).Attachments {
			if node != "" && node != a.Node {
				continue
			}
			if some, age = true, time.Since(a.Began); a.State != Detaching {
				a.State = Detaching
				s.set(volume, a)
				s.later(volume, a, "")
			}
		}
		if !some {
			return failure.Errorf(failure.Busy, "volume %q, node %q: %w", volume, node, ErrNotAttached)
		}
		return nil
	})
	return age, err
}

// later ends the state of an attachment after a while, unless the state has changed by then.
func (s *sim) later(volume string, from Attachment, end State) {
	takes := time.Duration(200+s.random.IntN(3000)) * time.Millisecond
	if s.faulty && s.random.IntN(10) == 0 {
		takes = s.stuck
	}
	time.AfterFunc(takes, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if a, ok := s.now(volume).on(from.Node); ok && a == from {
			a.State = end
			s.set(volume, a)
		}
	})
}

func (s *sim) names(node string) (taken []string) {
	for volume := range s.history {
		if a, ok := s.now(volume).on(node); ok {
			taken = append(taken, a.Name)
		}
	}
	return taken
}

func (s *sim) Taken(_ context.Context, node string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked["names of "+node]++
	return s.names(node), nil
}
