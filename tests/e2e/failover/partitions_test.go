package failover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// partitionedOften cuts a node off the network again and again, for up to three quarters of a minute. That is longer
// than the manager waits before it asks the cloud. Every tenth time a person believes that the node is dead and deletes
// its pod by force. Nothing is forced. The pod continues, or runs elsewhere once the network is back.
func (s *scene) partitionedOften(times int) {
	random, lives, doubted := rand.New(rand.NewPCG(1, 1)), 1, 0
	for round := 1; round <= times; round++ {
		s.must(s.CutNode(s.Context(), lost))
		s.died = time.Now()
		byForce := round%10 == 0
		if byForce {
			s.kubectl("cordon", lost)
			s.kubectl("delete", "pod", "web-0", "--force", "--grace-period=0")
		}
		for length := time.Duration(5+random.IntN(40)) * time.Second; time.Since(s.died) < length; {
			// Stimulus: the manager doubts the node, and asks the cloud.
			<-time.After(time.Second)
			s.untouched(round)
		}
		if time.Since(s.died) > 15*time.Second {
			doubted++
		}
		s.must(s.MendNode(s.Context(), lost))
		mended := time.Now()
		s.eventually("the node is Ready", patience, func(ctx context.Context) error {
			if node := s.node(ctx); !ready(node) || s.renewed(ctx).Before(mended) {
				return errors.New("it is not")
			}
			return nil
		})
		if byForce {
			lives++
			s.eventually("the pod runs elsewhere", patience, func(context.Context) error {
				return s.says(kept, fmt.Sprint("/data/file: OK\nlives ", lives))
			})
			s.kubectl("uncordon", lost)
			lives++
			s.move(fmt.Sprint("lives ", lives))
		}
		s.untouched(round)
	}
	s.must(s.says(lost, fmt.Sprint("lives ", lives)))
	s.Logf("%d times cut off, %d of them for longer than 15 s: nothing was forced", times, doubted)
	s.neverTwice()
}

// renewed returns the time at which the node last renewed its Lease.
func (s *scene) renewed(ctx context.Context) time.Time {
	lease, err := s.Client.CoordinationV1().Leases("kube-node-lease").Get(ctx, lost, metav1.GetOptions{})
	s.must(err)
	return lease.Spec.RenewTime.Time
}

// untouched checks that the volume is still attached to the node, and that the node is in service.
func (s *scene) untouched(round int) {
	if on := s.attached(); !slices.Equal(on, []string{region.NodeB}) {
		s.Fatalf("VIOLATION in round %d: after %v the volume is attached to %q, and the node that was cut off writes to it",
			round, time.Since(s.died), on)
	}
	if tainted(s.node(s.Context())) {
		s.Fatalf("VIOLATION in round %d: after %v the node is out of service, and its machine runs", round,
			time.Since(s.died))
	}
}
