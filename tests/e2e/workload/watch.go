package workload

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Patience is the limit for steps that take seconds on an idle machine.
const Patience = 3 * time.Minute

// objects returns the client for objects of a kind, in the namespace if the kind has namespaces.
func (c *Cluster) objects(kind Kind, namespace string) dynamic.ResourceInterface {
	if kind.Global {
		return c.Dynamic.Resource(kind.Resource)
	}
	return c.Dynamic.Resource(kind.Resource).Namespace(namespace)
}

// await calls done with each state of each object that the selector matches, until done returns true. For a deleted
// object, gone is true. If no object exists at first, done is not called, but await ends if empty returns true.
func (c *Cluster) await(
	ctx context.Context, kind Kind, namespace string, selector fields.Selector, empty func() bool,
	done func(object *unstructured.Unstructured, gone bool) (bool, error),
) error {
	objects := c.objects(kind, namespace)
	list := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector.String()
			return objects.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector.String()
			return objects.Watch(ctx, o)
		},
	}
	precondition := func(store cache.Store) (bool, error) { return len(store.List()) == 0 && empty(), nil }
	_, err := watchtools.UntilWithSync(ctx, list, &unstructured.Unstructured{}, precondition,
		func(event watch.Event) (bool, error) {
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				return false, fmt.Errorf("the watch says %v", event.Object)
			}
			return done(object, event.Type == watch.Deleted)
		})
	return err
}

// Await waits until an object satisfies wanted, and returns it.
func Await[T any](ctx context.Context, c *Cluster, kind Kind, namespace, name string,
	wanted func(*T) bool) (*T, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	var last *T
	never := func() bool { return false }
	err := c.await(ctx, kind, namespace, fields.OneTermEqualSelector("metadata.name", name), never,
		func(object *unstructured.Unstructured, gone bool) (bool, error) {
			if gone {
				return false, nil
			}
			typed := new(T)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
				return false, err
			}
			last = typed
			return wanted(typed), nil
		})
	return last, err
}

// AwaitGone waits until no object has the name.
func (c *Cluster) AwaitGone(ctx context.Context, kind Kind, namespace, name string) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	always := func() bool { return true }
	err := c.await(ctx, kind, namespace, fields.OneTermEqualSelector("metadata.name", name), always,
		func(_ *unstructured.Unstructured, gone bool) (bool, error) { return gone, nil })
	if err != nil {
		return fmt.Errorf("the %s %s does not go: %w", kind.Name, name, err)
	}
	return nil
}
