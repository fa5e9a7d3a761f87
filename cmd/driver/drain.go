package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/stowage-csi/stowage/pkg/failure"
)

const (
	// drainPeriod is how often the node is read while it still has volumes, and how long one answer may take.
	drainPeriod = 2 * time.Second
	// mostNamed is how many volumes a message names.
	mostNamed = 10
)

// drain delays the end of a node's driver. Only the driver can unmount the node's volumes, and Kubernetes detaches no
// mounted volume. If the driver ended first on a node that is being drained, the pods would wait elsewhere until
// another driver comes to the node, or the node is gone.
type drain struct {
	driver string
	limit  time.Duration                         // 0 to end at once
	read   func(context.Context) (object, error) // this Node
	log    *slog.Logger
}

// outlast returns a context that ends with ctx or, on a node that is being drained, once its volumes are gone. The
// caller calls end when the context is no longer needed.
func (d drain) outlast(ctx context.Context) (serving context.Context, end func()) {
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		defer cancel()
		if d.limit > 0 {
			d.wait(serving)
		}
	})
	return serving, func() { stop(); cancel() }
}

// wait returns when the node has no more volumes of the driver, or is not being drained, or the limit is over.
func (d drain) wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	w := waiting{drain: d, begin: time.Now()}
	for w.look(ctx) {
		select {
		case <-time.After(drainPeriod):
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				d.log.Warn("stopping although the node is being drained and has volumes", "volumes", some(w.left), "count",
					len(w.left), "waited", d.limit)
			}
			return
		}
	}
}

// waiting is a drain in progress.
type waiting struct {
	drain

	begin   time.Time
	left    []string // volumes; nil until the node was read
	failing bool
}

// look reads the node, and reports whether to keep waiting.
func (w *waiting) look(ctx context.Context) bool {
	node, err := w.ask(ctx)
	if errors.Is(ctx.Err(), context.Canceled) { // The server has ended.
		return false
	}
	if err != nil {
		return w.asksAgain(err)
	}
	w.failing = false
	why, now := node.leaving(), node.volumes(w.driver)
	if why == "" || len(now) == 0 {
		return false
	}
	if !slices.Equal(now, w.left) {
		w.log.Info("serving on until the node's volumes are unmounted and given up", "node", why, "volumes", some(now),
			"count", len(now))
	}
	w.left = now
	return true
}

// asksAgain reports whether to read the node again. Whether it is being drained must be known within a third of the
// limit.
func (w *waiting) asksAgain(err error) bool {
	if w.left == nil && (!errors.As(err, new(unreachable)) || time.Since(w.begin) >= w.limit/3) {
		w.log.Warn("it is not known whether the node is being drained: stopping", "error", failure.OneLine(err))
		return false
	}
	if !w.failing {
		w.log.Info("the node cannot be read: it is read again", "error", failure.OneLine(err))
	}
	w.failing = true
	return true
}

func (d drain) ask(ctx context.Context) (object, error) {
	ctx, cancel := context.WithTimeout(ctx, drainPeriod)
	defer cancel()
	return d.read(ctx)
}

func some(volumes []string) []string { return volumes[:min(len(volumes), mostNamed)] }

// leavingTaints returns the taints of nodes whose pods are driven off without a cordon, with the reason.
func leavingTaints() map[string]string {
	return map[string]string{
		"ToBeDeletedByClusterAutoscaler":    "the Cluster Autoscaler removes it",
		"karpenter.sh/disrupted":            "Karpenter removes it",
		"karpenter.sh/disruption":           "Karpenter removes it", // before Karpenter 1.0
		"node.kubernetes.io/out-of-service": "it is out of service",
	}
}

// leaving returns why the pods of a node are about to go; empty if they are not. A kubelet that shuts down with its
// machine reports that it is not Ready, and stops its pods.
func (o object) leaving() string {
	if o.Metadata.DeletionTimestamp != "" {
		return "it is being deleted"
	}
	if o.Spec.Unschedulable {
		return "it is cordoned"
	}
	for _, taint := range o.Spec.Taints {
		if why := leavingTaints()[taint.Key]; why != "" {
			return why
		}
	}
	for _, condition := range o.Status.Conditions {
		if condition.Type == "Ready" && condition.Status != "True" {
			return "it is not Ready"
		}
	}
	return ""
}

// volumes returns the handles of a driver's volumes that the kubelet has mounted on the node or that Kubernetes
// attached there.
func (o object) volumes(driver string) (handles []string) {
	names := slices.Clone(o.Status.VolumesInUse)
	for _, attached := range o.Status.VolumesAttached {
		names = append(names, attached.Name)
	}
	for _, name := range names {
		if handle, ours := strings.CutPrefix(name, "kubernetes.io/csi/"+driver+"^"); ours {
			handles = append(handles, handle)
		}
	}
	slices.Sort(handles)
	return slices.Compact(handles)
}
