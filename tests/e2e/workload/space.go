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

// label marks namespaces and classes of tests: what a run that died left is found by it.
const label = "stowage-e2e"

// prefix is that of the namespaces' names.
const prefix = "e2e-"

// Space is the namespace of a test.
type Space struct {
	*Cluster
	T         *testing.T
	Namespace string

	begun   time.Time
	handles []string // of volumes and snapshots that there were
}

// NewSpace makes a namespace that lives as long as the test.
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

// Must fails the test at once when there is an error.
func (s *Space) Must(err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
}

// Until waits until an object of the test is as wanted, and returns it. What is wanted is said in words for the
// failure.
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
