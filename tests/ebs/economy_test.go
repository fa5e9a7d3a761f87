package ebs

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	fake "github.com/stowage-csi/stowage/tests/cloud/ec2"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// limits returns the default limits of an account ("Request throttling for the Amazon EC2 API"): each action has its
// own bucket.
func limits() map[string]fake.Bucket {
	all := map[string]fake.Bucket{"": {Size: 100, PerSecond: 20}} // for reads
	for _, action := range region.Changes() {
		all[action] = fake.Bucket{Size: 50, PerSecond: 5}
	}
	return all
}

// A thousand volumes are created and attached to fifty instances, all requested at once, as after the start of a
// cluster. The account's limits determine the duration. Almost no request is refused because of its rate, and almost
// none is a read.
func TestEconomy(t *testing.T) {
	const volumes, instances = 1000, 50
	// Go 1.26 can hang when thousands of goroutines with simulated time help its garbage collector.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	synctest.Test(t, func(t *testing.T) {
		config := ordinary()
		config.Zones = config.Zones[:1]
		config.Buckets = limits()
		config.Types = map[string]fake.InstanceType{"m5.tiny": {MaxAttachments: 40}}
		r := region.New(t, config, 0)
		nodes := make([]string, instances)
		for i := range nodes {
			nodes[i] = r.Server.NewInstanceID()
			r.Server.AddInstance(fake.Instance{ID: nodes[i], Type: "m5.tiny", Zone: config.Zones[0]})
		}
		controller := process(t, r)
		began := time.Now()
		var group sync.WaitGroup
		for i := range volumes {
			group.Go(func() { provision(t, controller, fmt.Sprint("volume-", i), nodes[i%instances]) })
		}
		group.Wait()
		judgeEconomy(t, r.Server.Calls(), r.Server.Throttled(), time.Since(began), time.Duration(volumes-50)*time.Second/5)
	})
}

// process returns a backend as a controller runs it.
func process(t *testing.T, r *region.Region) backends.Backend {
	t.Helper()
	d := ebs.Definition()
	options := backends.Options{Driver: "ebs.csi.stowage.dev", Config: d.NewConfig(), Log: slog.New(slog.DiscardHandler)}
	timing := options.Config.(*ebs.Config).Timing
	r.Configure(&options)
	options.Config.(*ebs.Config).Timing, options.Config.(*ebs.Config).Rates = timing, nil
	instance, err := d.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return instance.Controller
}

// provision creates a volume and attaches it, with calls of one minute that are repeated.
func provision(t *testing.T, controller backends.Backend, name, node string) {
	var handle string
	for _, step := range []func(ctx context.Context) error{
		func(ctx context.Context) error {
			v, err := controller.Create(ctx, region.Spec(name))
			if backends.Is(err, backends.Exists) {
				v, err = controller.Find(ctx, region.Spec(name))
			}
			if err == nil {
				handle = v.Handle
			}
			return err
		},
		func(ctx context.Context) error {
			_, err := controller.(backends.Attacher).Attach(ctx, region.Request(handle, node))
			return err
		},
	} {
		for done := false; !done; {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err := step(ctx)
			cancel()
			if done = err == nil; !done && !undecided(err) {
				t.Errorf("%s: %v", name, err)
				return
			}
			if !done {
				<-time.After(5 * time.Second) // a sidecar's pause
			}
		}
	}
}

// tail is the limit for the last volume in addition to its turns: two reads for its creation and two for its
// attachment, each as late as reads are when hundreds are in progress, and one pause of a sidecar.
const tail = 4*13*time.Second + 5*time.Second

// judgeEconomy compares the requests with the necessary ones. The backend sends 4.8 requests a second where 5 are
// allowed.
func judgeEconomy(t *testing.T, calls map[string]int, throttled int, took, bound time.Duration) {
	t.Helper()
	reads, changes := 0, 0
	for action, n := range calls {
		if strings.HasPrefix(action, "Describe") {
			reads += n
		} else {
			changes += n
		}
	}
	if most := bound*50/48 + tail; took > most {
		t.Errorf("it took %v of at most %v, and the account's limits allow %v", took, most, bound)
	}
	// In 61 runs there were 34 to 51: calls at the same simulated instant are not ordered, and more or fewer of them share
	// a read. One more for every tenth volume would be more than 4 %.
	if reads*25 > changes {
		t.Errorf("%d requests read, for %d that change something", reads, changes)
	}
	if throttled*100 >= reads+changes {
		t.Errorf("%d of %d requests were refused for their rate", throttled, reads+changes)
	}
	t.Logf("%v for a bound of %v (%.2f); %d requests that change something, %d that read (%.1f %%), %d refused for "+
		"their rate (%.1f %%): %v",
		took.Round(time.Second), bound, took.Seconds()/bound.Seconds(), changes, reads, 100*float64(reads)/float64(changes),
		throttled, 100*float64(throttled)/float64(reads+changes), calls)
}
