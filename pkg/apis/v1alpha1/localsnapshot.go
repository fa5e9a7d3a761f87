package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LocalSnapshot is a snapshot of a LocalVolume that is wanted on its node, and what the node's driver made of it. Its
// name is the snapshot's handle. The master writes its spec and metadata, the worker on the node its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,path=localsnapshots,singular=localsnapshot,shortName=lsnap,categories=stowage
// +kubebuilder:selectablefield:JSONPath=`.spec.node`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.node`
// +kubebuilder:printcolumn:name="Volume",type=string,JSONPath=`.spec.volume`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.status.size`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Snapshot",type=string,priority=1,JSONPath=`.spec.snapshotName`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type LocalSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   LocalSnapshotSpec `json:"spec"`
	Status SnapshotStatus    `json:"status,omitempty"`
}

// Ordered returns the order of the LocalSnapshot and what came of it.
func (o *LocalSnapshot) Ordered() (*Order, *OrderStatus) { return &o.Spec.Order, &o.Status.OrderStatus }

// LocalSnapshotList is a list of LocalSnapshots.
//
// +kubebuilder:object:root=true
type LocalSnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []LocalSnapshot `json:"items"`
}

// LocalSnapshotSpec is the snapshot that is wanted.
//
// +kubebuilder:validation:XValidation:rule="self.node == oldSelf.node && self.snapshotName == oldSelf.snapshotName && self.volume == oldSelf.volume",message="node, snapshotName and volume of a LocalSnapshot never change"
// +kubebuilder:validation:XValidation:rule="has(self.parameters) == has(oldSelf.parameters) && (!has(self.parameters) || self.parameters == oldSelf.parameters)",message="the parameters of a LocalSnapshot never change"
// +kubebuilder:validation:XValidation:rule="self.attempt >= oldSelf.attempt",message="attempts are counted upwards"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.delete) && oldSelf.delete) || (has(self.delete) && self.delete)",message="a deletion cannot be taken back"
type LocalSnapshotSpec struct {
	Order `json:",inline"`

	// SnapshotName is the name that CSI has for the snapshot.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	SnapshotName string `json:"snapshotName"`

	// Volume is the name of the LocalVolume that the snapshot is of, and the volume's handle.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Volume string `json:"volume"`

	// Parameters are those of the VolumeSnapshotClass, as the driver spells them.
	//
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`
}

// SnapshotStatus is what the node's driver made of a LocalSnapshot. The worker on the node writes it.
type SnapshotStatus struct {
	OrderStatus `json:",inline"`

	// Size is the least size of a volume that is restored from the snapshot, once that is made.
	//
	// +optional
	Size Size `json:"size,omitempty"`

	// TakenAt is the time of the contents, by the node's clock. It is a text, which everybody can read who reads the
	// object: a time that cannot be read would hide the objects of all nodes.
	//
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z$`
	// +kubebuilder:validation:MaxLength=30
	// +optional
	TakenAt string `json:"takenAt,omitempty"`
}
