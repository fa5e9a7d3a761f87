package workload

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// SnapshotStatus holds the fields of a VolumeSnapshot or its content that tests read.
type SnapshotStatus struct {
	Status struct {
		ReadyToUse     bool   `json:"readyToUse"`
		Content        string `json:"boundVolumeSnapshotContentName"`
		SnapshotHandle string `json:"snapshotHandle"`
	} `json:"status"`
}

// Snapshot takes a snapshot of a claim and waits until it can be used.
func (s *Space) Snapshot(name, class, claim string) {
	s.T.Helper()
	snapshot := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Snapshots().Resource.GroupVersion().String(), "kind": Snapshots().Name,
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"volumeSnapshotClassName": class, "source": map[string]any{"persistentVolumeClaimName": claim},
		},
	}}
	_, err := s.objects(Snapshots(), s.Namespace).Create(s.Context(), snapshot, metav1.CreateOptions{})
	s.Must(err)
	s.awaitSnapshot(name)
}

// awaitSnapshot waits until a snapshot can be used.
func (s *Space) awaitSnapshot(name string) {
	s.T.Helper()
	ready := Until(s, Snapshots(), name, "can be used", func(s *SnapshotStatus) bool { return s.Status.ReadyToUse })
	content := Until(s, Contents(), ready.Status.Content, "has a handle",
		func(s *SnapshotStatus) bool { return s.Status.SnapshotHandle != "" })
	s.handles = append(s.handles, content.Status.SnapshotHandle)
}

// DeleteSnapshot deletes a snapshot and waits until it is gone.
func (s *Space) DeleteSnapshot(name string) {
	s.T.Helper()
	s.Must(s.objects(Snapshots(), s.Namespace).Delete(s.Context(), name, metav1.DeleteOptions{}))
	s.UntilGone(Snapshots(), name)
}
