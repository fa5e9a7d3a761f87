package failover

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/pkg/printable"
)

type metrics struct {
	nodes                                   *prometheus.GaugeVec
	detachments                             *prometheus.CounterVec
	fenced, released, pods, freed, failures prometheus.Counter
}

func newMetrics(driver string) *metrics {
	labels := prometheus.Labels{"driver": driver}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, ConstLabels: labels, Help: help})
	}
	m := &metrics{
		nodes: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "stowage_failover_nodes", ConstLabels: labels,
			Help: "Nodes that work, that are silent and not proven to be off (doubtful), and that are out of service by this " +
				"driver's or by another's taint.",
		}, []string{"node_state"}),
		detachments: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stowage_failover_detachments_total", ConstLabels: labels,
			Help: "Questions of the driver whether a volume may be detached: it may (free), its node uses it (held), or " +
				"nobody knows (unknown).",
		}, []string{"verdict"}),
		fenced: counter("stowage_failover_fenced_total",
			"Nodes that were put out of service because their machine was proven to be off."),
		released: counter("stowage_failover_released_total", "Nodes that were put into service again."),
		pods: counter("stowage_failover_deleted_pods_total",
			"Pods that were deleted for good because their node was put out of service."),
		freed: counter("stowage_failover_freed_attachments_total",
			"VolumeAttachments that were deleted because their node was gone and its machine terminated."),
		failures: counter("stowage_failover_failures_total",
			"Looks, questions about nodes that work, writes and deletions of failover that failed."),
	}
	for _, verdict := range []string{"free", "held", "unknown"} {
		m.detachments.WithLabelValues(verdict)
	}
	return m
}

func (m *metrics) register(registry prometheus.Registerer) error {
	var err error
	for _, c := range []prometheus.Collector{m.nodes, m.detachments, m.fenced, m.released, m.pods, m.freed, m.failures} {
		err = errors.Join(err, registry.Register(c))
	}
	return err
}

// states returns the values of the label of stowage_failover_nodes.
func states() []string { return []string{"working", "doubtful", "out_of_service", "by_others"} }

func state(s sight, todo act, quiet bool) string {
	switch {
	case s.mark == theirs:
		return "by_others"
	case s.mark == ours:
		return "out_of_service"
	case todo == ask && (quiet || !s.ready): // A late renewal is not reported.
		return "doubtful"
	}
	return "working"
}

func (m *metrics) count(nodes map[string]int) {
	for _, s := range states() {
		m.nodes.WithLabelValues(s).Set(float64(nodes[s]))
	}
}

// seldom is the minimum time between two events about a node that is not proven to be off.
const seldom = 30 * time.Second

// tell records an event that says why a node in trouble is left alone: once for each change of the reason, and not too
// often.
func (w *watcher) tell(s sight, r *record, why verdict, says string) {
	now := w.now()
	idle := why == unidentified && s.inUse == 0 // Failover would free no volume.
	if r.told == why || now.Sub(r.toldAt) < seldom || idle {
		return
	}
	r.told, r.toldAt = why, now
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.name, UID: types.UID(s.uid)}}
	if why == unwritten {
		w.announce(node, corev1.EventTypeWarning, "TaintRefused",
			"the machine is off, and the node could not be put out of service: %s", says)
		return
	}
	if why == inUse {
		w.announce(node, corev1.EventTypeWarning, "StillOutOfService",
			"the node works again and stays out of service while it reports volumes in use: %s", says)
		return
	}
	w.announceAs(node, corev1.EventTypeWarning, "NotProvenOff", string(why),
		"the node is silent or not Ready, and its volumes stay attached: %s", explain(why, says))
}

// remark records an event about a node that cannot be put into service again, and forgets the last verdict of a working
// node.
func (w *watcher) remark(s sight, r *record, todo act, now time.Time) {
	switch {
	case todo == rest:
		r.told = ""
	case todo == hold && s.ready && r.lively(now, w.timingOf(s).quiet) && now.Sub(r.born) >= seldom:
		w.tell(s, r, inUse, fmt.Sprintf("%d, the first is %s", s.inUse, s.first))
	}
}

// learned counts answers without information about a working node's machine, for example for lack of permission, and
// logs the first. Such answers could not prove anything when the node dies.
func (w *watcher) learned(s sight, r *record, found verdict, says string) {
	if found != unknown {
		r.mute = false
		return
	}
	w.metrics.failures.Inc()
	if !r.mute {
		r.mute = true
		w.Log.Warn("the node could not be put out of service: what its machine does is not known", "node", s.name, "error",
			says)
	}
}

func explain(why verdict, says string) string {
	switch why {
	case running:
		return "its machine runs and may write to them. " + says
	case stopping:
		return "its machine is being stopped and may still write to them. " + says
	case outdated:
		return "the provider's answer is older than one before it. " + says
	case premature:
		return "the provider's answer may be older than the node's last sign of life. " + says
	case alive:
		return "the node gives signs of life. " + says
	case unidentified:
		return "it is not known which machine the node is: " + says
	case refuted:
		return "the node lived on when the provider said the same before, so that it errs, or speaks of another machine. " +
			says
	case proven, unknown, inUse, unwritten:
	}
	return fmt.Sprintf("what its machine does is not known: %s", says)
}

// announce logs a decision and records it as an event of the node.
func (w *watcher) announce(node *corev1.Node, kind, reason, format string, evidence string) {
	w.announceAs(node, kind, reason, "Failover", format, evidence)
}

// announceAs is announce with the action of the event. Kubernetes merges events that differ only in their text, and
// shows the first.
func (w *watcher) announceAs(node *corev1.Node, kind, reason, action, format, evidence string) {
	sentence := printable.Event(fmt.Sprintf(format, evidence))
	if kind == corev1.EventTypeWarning {
		w.Log.Warn(sentence, "node", node.Name)
	} else {
		w.Log.Info(sentence, "node", node.Name)
	}
	node = &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID}}
	w.events.Eventf(node, nil, kind, reason, action, "%s", sentence)
}
