package workload

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/yaml"

	"github.com/stowage-csi/stowage/tests/e2e/deployed"
)

// explain returns what an operator would look at: the object, the events of the namespace, and the driver's log.
func (s *Space) explain(kind Kind, name string) string {
	// The test's own context may be done.
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var text strings.Builder
	object, err := s.objects(kind, s.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		object.SetManagedFields(nil)
		shown, _ := yaml.Marshal(object.Object) // It came from JSON.
		fmt.Fprintf(&text, "--- %s %s\n%s", kind.Name, name, shown)
	} else {
		fmt.Fprintf(&text, "--- %s %s: %v\n", kind.Name, name, err)
	}
	fmt.Fprintf(&text, "--- events in %s\n", s.Namespace)
	for _, event := range s.events(ctx, fields.Everything()) {
		fmt.Fprintf(&text, "%s %s %s/%s: %s\n", event.Type, event.Reason, event.InvolvedObject.Kind,
			event.InvolvedObject.Name, event.Message)
	}
	for _, container := range []string{deployed.Container, "csi-provisioner", deployed.Manager} {
		fmt.Fprintf(&text, "--- log of %s since the test began\n%s", container, s.DriverLog(ctx, container, s.begun, 40))
	}
	return text.String()
}

func (s *Space) events(ctx context.Context, selector fields.Selector) []corev1.Event {
	list, err := s.Client.CoreV1().Events(s.Namespace).List(ctx, metav1.ListOptions{FieldSelector: selector.String()})
	if err != nil {
		return nil
	}
	return list.Items
}

// DriverLog returns the last lines of the log of a container of the driver's pod.
func (c *Cluster) DriverLog(ctx context.Context, container string, since time.Time, lines int64) string {
	text, err := c.log(ctx, deployed.Namespace, deployed.Pod, &corev1.PodLogOptions{
		Container: container, TailLines: &lines, SinceTime: &metav1.Time{Time: since},
	})
	if err != nil {
		return err.Error() + "\n"
	}
	return text
}

func (c *Cluster) log(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (string, error) {
	stream, err := c.Client.CoreV1().Pods(namespace).GetLogs(pod, options).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = stream.Close() }()
	var text bytes.Buffer
	_, err = io.Copy(&text, stream)
	return text.String(), err
}
