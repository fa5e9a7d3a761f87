package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// bind measures claims of a pool, with and without the binder, and dynamic ones.
func bind(ctx context.Context, p *plane, o options) error {
	fmt.Printf("%d claims at once: p50, p99, all, a second\n", o.claims)
	if err := p.timed(ctx, "dynamic", plain, o.claims); err != nil {
		return err
	}
	for _, round := range []struct {
		name string
		qps  int
	}{{"pool, bound by Kubernetes", 0}, {"pool, bound by the manager", o.qps},
		{"pool, bound by the manager, again", o.qps}} {
		stop, err := p.manager(ctx, round.qps)
		if err != nil {
			return err
		}
		set := newSet("timed", o.claims)
		if err := p.client.Create(ctx, set); err != nil {
			return err
		}
		if err := p.filled(ctx, set); err != nil {
			return err
		}
		if err := p.timed(ctx, round.name, class, o.claims); err != nil {
			return err
		}
		if err := p.client.Delete(ctx, set); err != nil {
			return err
		}
		if err := p.until(ctx, "the set's end", func() error { return p.isGone(ctx, set) }); err != nil {
			return err
		}
		stop()
	}
	return nil
}

func (p *plane) isGone(ctx context.Context, object client.Object) error {
	err := p.client.Get(ctx, client.ObjectKeyFromObject(object), object)
	if err == nil {
		return fmt.Errorf("%s is there", object.GetName())
	}
	return client.IgnoreNotFound(err)
}

// filled waits until a set's minimum of volumes is ready.
func (p *plane) filled(ctx context.Context, set *v1alpha1.PersistentVolumeSet) error {
	return p.until(ctx, "a full set", func() error {
		if err := p.client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if set.Status.UnboundReplicas != set.Spec.MinimumReplicas {
			return fmt.Errorf("%d volumes are ready: %v", set.Status.UnboundReplicas, set.Status.Conditions)
		}
		return nil
	})
}

// timed creates claims at once, waits until they are bound, prints the times, and deletes the claims.
func (p *plane) timed(ctx context.Context, name, class string, count int) error {
	audit, err := p.audit()
	if err != nil {
		return err
	}
	claims := p.kube.CoreV1().PersistentVolumeClaims(namespace)
	events, err := claims.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer events.Stop()
	begun := time.Now()
	starts, failed := p.makeAll(ctx, class, count)
	ends, err := boundOf(ctx, events, count)
	if err != nil {
		return err
	}
	total := time.Since(begun)
	if err := failed(); err != nil {
		return err
	}
	times := make([]time.Duration, 0, count)
	for name, end := range ends {
		begun, _ := starts.Load(name)
		times = append(times, end.Sub(begun.(time.Time))) //nolint:errcheck // makeAll stored it.
	}
	slices.Sort(times)
	fmt.Printf("%-36s %8v %8v %8v %6.1f\n", name, times[count/2].Round(time.Millisecond),
		times[count*99/100].Round(time.Millisecond),
		total.Round(time.Millisecond), float64(count)/total.Seconds())
	if err := audit.print(count); err != nil {
		return err
	}
	return p.deleteAll(ctx)
}

func (p *plane) makeAll(ctx context.Context, class string, count int) (*sync.Map, func() error) {
	var group sync.WaitGroup
	starts, next, failures := &sync.Map{}, make(chan string, count), make(chan error, count)
	for i := range count {
		next <- fmt.Sprintf("claim-%d", i)
	}
	close(next)
	for range 8 {
		group.Go(func() {
			for name := range next {
				starts.Store(name, time.Now())
				if err := p.client.Create(ctx, newClaim(name, class)); err != nil {
					failures <- err
				}
			}
		})
	}
	return starts, func() error {
		group.Wait()
		close(failures)
		return <-failures
	}
}

// boundOf waits until count claims are bound, and returns the times.
func boundOf(ctx context.Context, events watch.Interface, count int) (map[string]time.Time, error) {
	ends := map[string]time.Time{}
	limit := time.After(10 * time.Minute)
	for len(ends) < count {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-limit:
			return nil, fmt.Errorf("%d of %d claims are bound after ten minutes", len(ends), count)
		case event, ok := <-events.ResultChan():
			if !ok {
				return nil, fmt.Errorf("the watch ended with %d claims bound", len(ends))
			}
			claim, ok := event.Object.(*corev1.PersistentVolumeClaim)
			if ok && claim.Status.Phase == corev1.ClaimBound && ends[claim.Name].IsZero() {
				ends[claim.Name] = time.Now()
			}
		}
	}
	return ends, nil
}

// deleteAll deletes all claims and waits until their volumes are gone.
func (p *plane) deleteAll(ctx context.Context) error {
	if err := p.client.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(namespace)); err != nil {
		return err
	}
	return p.until(ctx, "the end of all claims' volumes", func() error {
		var all corev1.PersistentVolumeList
		if err := p.client.List(ctx, &all); err != nil {
			return err
		}
		for i := range all.Items {
			if all.Items[i].Spec.ClaimRef != nil {
				return fmt.Errorf("%s is there", all.Items[i].Name)
			}
		}
		return nil
	})
}
