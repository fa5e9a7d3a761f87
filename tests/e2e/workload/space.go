package workload

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// label marks the namespaces and classes of tests, so that the leftovers of an interrupted run can be found.
const label = "stowage-e2e"

// prefix is the prefix of the namespaces' names.
const prefix = "e2e-"

// Space is the namespace of a test.
type Space struct {
	*Cluster
	T         *testing.T
	Namespace string

	begun   time.Time
	handles []string // of all volumes and snapshots that the test has had
}

// NewSpace creates a namespace that exists until the test ends.
func (c *Cluster) NewSpace(t *testing.T) *Space {
	t.Helper()
	name := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(strings.TrimPrefix(t.Name(), "Test")), "-")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: prefix + name[:min(len(name), 40)] + "-", Labels: map[string]string{label: "true"},
	}}
	made, err := c.Client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := &Space{Cluster: c, T: t, Namespace: made.Name, begun: time.Now()}
	t.Cleanup(s.remove)
	return s
}

// Context is done when the test ends.
func (s *Space) Context() context.Context { return s.T.Context() }

// Must fails the test immediately if err is not nil.
func (s *Space) Must(err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
}

// Until waits until an object of the test satisfies done, and returns it. The failure message describes the condition
// with wanted.
func Until[T any](s *Space, kind Kind, name, wanted string, done func(*T) bool) *T {
	s.T.Helper()
	object, err := Await(s.Context(), s.Cluster, kind, s.Namespace, name, done)
	if err != nil {
		s.T.Fatalf("the %s %s %s: not within %v (%v)\n%s", kind.Name, name, wanted, Patience, err, s.explain(kind, name))
	}
	return object
}

// UntilGone waits until the object is deleted.
func (s *Space) UntilGone(kind Kind, name string) {
	s.T.Helper()
	if err := s.AwaitGone(s.Context(), kind, s.Namespace, name); err != nil {
		s.T.Fatalf("%v\n%s", err, s.explain(kind, name))
	}
}
