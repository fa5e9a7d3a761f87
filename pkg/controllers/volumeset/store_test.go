package volumeset

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// kind is a kind of object that the manager reads.
type kind int

const (
	sets kind = iota
	volumes
	classes
	kinds // number of kinds
)

func kindOf(object any) kind {
	switch object.(type) {
	case *v1alpha1.PersistentVolumeSet, *v1alpha1.PersistentVolumeSetList:
		return sets
	case *corev1.PersistentVolume, *corev1.PersistentVolumeList:
		return volumes
	case *storagev1.StorageClass:
		return classes
	}
	panic(fmt.Sprintf("the store has no %T", object))
}

// objects holds the objects of one kind, by name. They are replaced, never changed.
type objects map[string]client.Object

// change is a step in the history of a kind. A nil object is gone.
type change struct {
	name   string
	object client.Object
}

// store is the storage of an API server: the current objects, and the history that caches follow.
type store struct {
	version int
	now     func() time.Time
	live    [kinds]objects
	history [kinds][]change
}

func newStore(now func() time.Time) *store {
	s := &store{now: now}
	for k := range s.live {
		s.live[k] = objects{}
	}
	return s
}

var errNone = errors.New("none")

func (s *store) put(object client.Object) {
	k := kindOf(object)
	s.version++
	object.SetResourceVersion(strconv.Itoa(s.version))
	if object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 {
		delete(s.live[k], object.GetName())
		s.history[k] = append(s.history[k], change{name: object.GetName()})
		return
	}
	s.live[k][object.GetName()] = object
	s.history[k] = append(s.history[k], change{object.GetName(), object})
}

func (s *store) create(object client.Object, dry bool) error {
	k := kindOf(object)
	if s.live[k][object.GetName()] != nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{}, object.GetName())
	}
	if dry {
		return nil
	}
	kept, _ := object.DeepCopyObject().(client.Object)
	kept.SetUID(types.UID(fmt.Sprintf("%s-%d", object.GetName(), s.version)))
	kept.SetCreationTimestamp(metav1.Time{Time: s.now()})
	s.put(kept)
	return nil
}

// update replaces either an object's status or everything else.
func (s *store) update(object client.Object, status bool) error {
	k := kindOf(object)
	now := s.live[k][object.GetName()]
	switch {
	case now == nil:
		return apierrors.NewNotFound(schema.GroupResource{}, object.GetName())
	case now.GetResourceVersion() != object.GetResourceVersion():
		return apierrors.NewConflict(schema.GroupResource{}, object.GetName(), errNone)
	}
	kept, _ := object.DeepCopyObject().(client.Object)
	switch kept := kept.(type) {
	case *v1alpha1.PersistentVolumeSet:
		before, _ := now.(*v1alpha1.PersistentVolumeSet)
		if status {
			kept.ObjectMeta, kept.Spec = *before.ObjectMeta.DeepCopy(), *before.Spec.DeepCopy()
		} else {
			kept.Status = *before.Status.DeepCopy()
		}
	case *corev1.PersistentVolume:
		before, _ := now.(*corev1.PersistentVolume)
		kept.Status = *before.Status.DeepCopy()
	}
	if !equality.Semantic.DeepEqual(now, kept) {
		s.put(kept)
	}
	object.SetResourceVersion(kept.GetResourceVersion())
	return nil
}

func (s *store) delete(k kind, name string, seen *metav1.Preconditions) error {
	now := s.live[k][name]
	switch {
	case now == nil:
		return apierrors.NewNotFound(schema.GroupResource{}, name)
	case seen != nil && (*seen.UID != now.GetUID() || *seen.ResourceVersion != now.GetResourceVersion()):
		return apierrors.NewConflict(schema.GroupResource{}, name, errNone)
	case now.GetDeletionTimestamp() != nil:
		return nil
	}
	kept, _ := now.DeepCopyObject().(client.Object)
	kept.SetDeletionTimestamp(&metav1.Time{Time: s.now()})
	s.put(kept)
	return nil
}

// volumes returns the PersistentVolumes in the order of their names.
func (s *store) volumes() (all []*corev1.PersistentVolume) {
	for _, name := range slices.Sorted(maps.Keys(s.live[volumes])) {
		v, _ := s.live[volumes][name].(*corev1.PersistentVolume)
		all = append(all, v)
	}
	return all
}

// set returns the set, or nil if it is gone.
func (s *store) set() *v1alpha1.PersistentVolumeSet {
	set, _ := s.live[sets]["set"].(*v1alpha1.PersistentVolumeSet)
	return set
}

// get reads an object: a live one, or one of a cache.
func (all objects) get(name string, into client.Object) error {
	object := all[name]
	if object == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, name)
	}
	switch into := into.(type) {
	case *v1alpha1.PersistentVolumeSet:
		object.(*v1alpha1.PersistentVolumeSet).DeepCopyInto(into)
	case *corev1.PersistentVolume:
		object.(*corev1.PersistentVolume).DeepCopyInto(into)
	case *storagev1.StorageClass:
		object.(*storagev1.StorageClass).DeepCopyInto(into)
	}
	return nil
}

func (all objects) list(into client.ObjectList, options []client.ListOption) error {
	o := &client.ListOptions{}
	o.ApplyOptions(options)
	if list, ok := into.(*v1alpha1.PersistentVolumeSetList); ok {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			set, _ := all[name].(*v1alpha1.PersistentVolumeSet)
			list.Items = append(list.Items, *set.DeepCopy())
		}
		return nil
	}
	list, _ := into.(*corev1.PersistentVolumeList)
	list.Items = nil
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if isIndexed(all[name], o.FieldSelector) && (o.LabelSelector == nil ||
			o.LabelSelector.Matches(labels.Set(all[name].GetLabels()))) {
			v, _ := all[name].(*corev1.PersistentVolume)
			list.Items = append(list.Items, *v.DeepCopy())
		}
	}
	return nil
}

// isIndexed reports whether the indexes match an object to the fields.
func isIndexed(object client.Object, by fields.Selector) bool {
	if by == nil {
		return true
	}
	for _, r := range by.Requirements() {
		if !slices.Contains(indexes()[r.Field](object), r.Value) {
			return false
		}
	}
	return true
}
