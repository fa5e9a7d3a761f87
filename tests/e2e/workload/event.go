package workload

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// Event waits for an event of an object with the reason and with every part in its message, and returns the message.
func (s *Space) Event(kind Kind, name, reason string, parts ...string) string {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), Patience)
	defer cancel()
	var message string
	namespace := s.Namespace
	if kind.Global {
		namespace = metav1.NamespaceDefault // Events of objects without a namespace are here.
	}
	about := fields.Set{"involvedObject.kind": kind.Name, "involvedObject.name": name, "reason": reason}
	err := s.await(ctx, Kind{Name: "Event", Resource: core("events")}, namespace, about.AsSelector(),
		func() bool { return false },
		func(object *unstructured.Unstructured, _ bool) (bool, error) {
			var event corev1.Event
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &event); err != nil {
				return false, err
			}
			for _, part := range parts {
				if !strings.Contains(event.Message, part) {
					return false, nil
				}
			}
			message = event.Message
			return true, nil
		})
	if err != nil {
		s.T.Fatalf("there is no event %s about the %s %s that says %q: %v\n%s", reason, kind.Name, name, parts, err,
			s.explain(kind, name))
	}
	s.T.Logf("event %s of the %s %s: %s", reason, kind.Name, name, message)
	return message
}
