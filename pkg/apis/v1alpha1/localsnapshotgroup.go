package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LocalSnapshotGroup is snapshots of several LocalVolumes of one node that are wanted of one instant, and what the
// node's driver made of them. Its name is the group's handle. The master writes its spec and metadata, the worker on
// the node its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,path=localsnapshotgroups,singular=localsnapshotgroup,shortName=lsgroup,categories=stowage
// +kubebuilder:selectablefield:JSONPath=`.spec.node`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.node`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Group",type=string,priority=1,JSONPath=`.spec.groupName`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type LocalSnapshotGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   LocalSnapshotGroupSpec `json:"spec"`
	Status SnapshotGroupStatus    `json:"status,omitempty"`
}

// Ordered returns the order of the LocalSnapshotGroup and what came of it.
func (o *LocalSnapshotGroup) Ordered() (*Order, *OrderStatus) {
	return &o.Spec.Order, &o.Status.OrderStatus
}

// LocalSnapshotGroupList is a list of LocalSnapshotGroups.
//
// +kubebuilder:object:root=true
type LocalSnapshotGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []LocalSnapshotGroup `json:"items"`
}

// LocalSnapshotGroupSpec is the group that is wanted.
//
// +kubebuilder:validation:XValidation:rule="self.node == oldSelf.node && self.groupName == oldSelf.groupName && self.members == oldSelf.members && self.fingerprint == oldSelf.fingerprint",message="node, groupName, members and fingerprint of a LocalSnapshotGroup never change"
// +kubebuilder:validation:XValidation:rule="has(self.parameters) == has(oldSelf.parameters) && (!has(self.parameters) || self.parameters == oldSelf.parameters)",message="the parameters of a LocalSnapshotGroup never change"
// +kubebuilder:validation:XValidation:rule="self.attempt >= oldSelf.attempt",message="attempts are counted upwards"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.delete) && oldSelf.delete) || (has(self.delete) && self.delete)",message="a deletion cannot be taken back"
type LocalSnapshotGroupSpec struct {
	Order `json:",inline"`

	// GroupName is the name that CSI has for the group.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	GroupName string `json:"groupName"`

	// Members are the snapshots of the group, in the order in which they were asked for.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	Members []GroupMember `json:"members"`

	// Parameters are those of the VolumeGroupSnapshotClass, as the driver spells them.
	//
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`

	// Fingerprint stands for all that makes two requests of one name different.
	//
	// +kubebuilder:validation:MaxLength=128
	Fingerprint string `json:"fingerprint"`
}

// GroupMember is a snapshot of a group.
type GroupMember struct {
	// Volume is the name of the LocalVolume that the snapshot is of, and the volume's handle.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Volume string `json:"volume"`

	// Snapshot is the handle of the snapshot.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Snapshot string `json:"snapshot"`
}

// SnapshotGroupStatus is what the node's driver made of a LocalSnapshotGroup. The worker on the node writes it.
type SnapshotGroupStatus struct {
	OrderStatus `json:",inline"`

	// Sizes are the least sizes of volumes that are restored from the members, once those are made, in their order.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Sizes []Size `json:"sizes,omitempty"`

	// TakenAt is the time of the contents, as that of a LocalSnapshot.
	//
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z$`
	// +kubebuilder:validation:MaxLength=30
	// +optional
	TakenAt string `json:"takenAt,omitempty"`
}
