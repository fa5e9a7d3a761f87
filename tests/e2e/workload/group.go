package workload

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// GroupLabel is the label of claims that are snapshotted together.
const GroupLabel = "group"

// Groups is the kind VolumeGroupSnapshot.
func Groups() Kind {
	return Kind{Name: "VolumeGroupSnapshot", Resource: group("groupsnapshot.storage.k8s.io", "v1", "volumegroupsnapshots")}
}

// Group takes a group snapshot of all claims whose label GroupLabel is name. It waits until count members can be used,
// and returns their names.
func (s *Space) Group(name, class string, count int) (members []string) {
	s.T.Helper()
	selector := map[string]any{"matchLabels": map[string]any{GroupLabel: name}}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Groups().Resource.GroupVersion().String(), "kind": Groups().Name,
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"volumeGroupSnapshotClassName": class, "source": map[string]any{"selector": selector}},
	}}
	_, err := s.objects(Groups(), s.Namespace).Create(s.Context(), object, metav1.CreateOptions{})
	s.Must(err)
	Until(s, Groups(), name, "can be used", func(s *SnapshotStatus) bool { return s.Status.ReadyToUse })
	s.Must(Eventually(s.Context(), "the members of "+name, func() (err error) {
		if members, err = s.membersOf(name); err == nil && len(members) != count {
			err = fmt.Errorf("they are %v, want %d", members, count)
		}
		return err
	}))
	for _, member := range members {
		s.awaitSnapshot(member)
	}
	return members
}

// membersOf returns the snapshots whose status names the group. The status is written shortly after the group is ready.
func (s *Space) membersOf(name string) (members []string, err error) {
	list, err := s.objects(Snapshots(), s.Namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, o := range list.Items {
		if of, _, _ := unstructured.NestedString(o.Object, "status", "volumeGroupSnapshotName"); of == name {
			members = append(members, o.GetName())
		}
	}
	return members, nil
}

// DeleteGroup deletes a group and waits until it and its members are gone.
func (s *Space) DeleteGroup(name string, members []string) {
	s.T.Helper()
	s.Must(s.objects(Groups(), s.Namespace).Delete(s.Context(), name, metav1.DeleteOptions{}))
	s.UntilGone(Groups(), name)
	for _, member := range members {
		s.UntilGone(Snapshots(), member)
	}
}
