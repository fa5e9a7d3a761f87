package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LocalVolume is a volume that is wanted on a node, and what the node's driver made of it. Its name is the volume's
// handle. The master writes its spec and metadata, the worker on the node its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,path=localvolumes,singular=localvolume,shortName=lvol,categories=stowage
// +kubebuilder:selectablefield:JSONPath=`.spec.node`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.node`
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.spec.pool`
// +kubebuilder:printcolumn:name="Capacity",type=string,JSONPath=`.status.capacity`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Volume",type=string,priority=1,JSONPath=`.spec.volumeName`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type LocalVolume struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   LocalVolumeSpec `json:"spec"`
	Status VolumeStatus    `json:"status,omitempty"`
}

// LocalVolumeList is a list of LocalVolumes.
//
// +kubebuilder:object:root=true
type LocalVolumeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []LocalVolume `json:"items"`
}

// LocalVolumeSpec is the volume that is wanted. All that is needed at its end stands here from its beginning: nothing
// reads the class again.
//
// +kubebuilder:validation:XValidation:rule="self.node == oldSelf.node && self.pool == oldSelf.pool && self.poolType == oldSelf.poolType && self.volumeName == oldSelf.volumeName && self.fingerprint == oldSelf.fingerprint",message="node, pool, poolType, volumeName and fingerprint of a LocalVolume never change"
// +kubebuilder:validation:XValidation:rule="self.access == oldSelf.access",message="the access of a LocalVolume never changes"
// +kubebuilder:validation:XValidation:rule="has(self.source) == has(oldSelf.source) && (!has(self.source) || self.source == oldSelf.source)",message="the source of a LocalVolume never changes"
// +kubebuilder:validation:XValidation:rule="has(self.parameters) == has(oldSelf.parameters) && (!has(self.parameters) || self.parameters == oldSelf.parameters)",message="the parameters of a LocalVolume never change"
// +kubebuilder:validation:XValidation:rule="has(self.settings) == has(oldSelf.settings) && (!has(self.settings) || self.settings == oldSelf.settings)",message="the settings of a LocalVolume never change"
// +kubebuilder:validation:XValidation:rule="self.attempt >= oldSelf.attempt",message="attempts are counted upwards"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.delete) && oldSelf.delete) || (has(self.delete) && self.delete)",message="a deletion cannot be taken back"
type LocalVolumeSpec struct {
	Order `json:",inline"`

	// Pool of the node's driver that has the volume.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Pool string `json:"pool"`

	// PoolType says what the pool's volumes are, in the driver's word.
	//
	// +kubebuilder:validation:MaxLength=63
	PoolType string `json:"poolType"`

	// VolumeName is the name that CSI has for the volume.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	VolumeName string `json:"volumeName"`

	// Parameters are those of the StorageClass, as the driver spells them.
	//
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`

	// Settings are what the node obeys, by the names of class parameters.
	//
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Settings map[string]string `json:"settings,omitempty"`

	// MutableParameters are those that the order gives the driver: to make the volume, or to modify it. An expansion
	// gives it none, and repeats those that it last took.
	//
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	MutableParameters map[string]string `json:"mutableParameters,omitempty"`

	// Access lists the ways in which the volume will be used: each type in each mode.
	Access VolumeAccess `json:"access"`

	// RequiredBytes is the least size of the volume; 0 for any. It only grows.
	//
	// +kubebuilder:validation:Minimum=0
	RequiredBytes int64 `json:"requiredBytes"`

	// LimitBytes is the largest size of the volume; 0 for any.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	LimitBytes int64 `json:"limitBytes,omitempty"`

	// Fingerprint stands for all that makes two requests of one name different.
	//
	// +kubebuilder:validation:MaxLength=128
	Fingerprint string `json:"fingerprint"`

	// Source is what the volume is filled from; none for an empty one.
	//
	// +optional
	Source *VolumeSource `json:"source,omitempty"`
}

// VolumeSource is a snapshot or a volume of the same node, by its handle.
//
// +kubebuilder:validation:ExactlyOneOf=snapshot;volume
type VolumeSource struct {
	// Snapshot is the name of a LocalSnapshot.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Snapshot string `json:"snapshot,omitempty"`

	// Volume is the name of a LocalVolume.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Volume string `json:"volume,omitempty"`
}

// VolumeAccess lists ways to use a volume: each type in each mode.
type VolumeAccess struct {
	// Block says that the volume will be used as a raw device.
	//
	// +optional
	Block bool `json:"block,omitempty"`

	// Mounts says how the volume will be mounted.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Mounts []VolumeMount `json:"mounts,omitempty"`

	// Modes are the access modes of CSI, such as SINGLE_NODE_WRITER.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Modes []AccessMode `json:"modes"`
}

// AccessMode is an access mode of CSI.
//
// +kubebuilder:validation:MaxLength=63
type AccessMode string

// VolumeMount is one way to mount a volume.
type VolumeMount struct {
	// Filesystem such as ext4; empty when any will do.
	//
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Filesystem string `json:"filesystem,omitempty"`

	// Options of the mount.
	//
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +optional
	Options []string `json:"options,omitempty"`
}

// VolumeStatus is what the node's driver made of a LocalVolume. The worker on the node writes it.
type VolumeStatus struct {
	OrderStatus `json:",inline"`

	// Capacity of the volume once it is made.
	//
	// +optional
	Capacity Size `json:"capacity,omitempty"`

	// MutableParameters are those that the driver was last given and took.
	//
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) <= 253 && size(self[name]) <= 4096)",message="a mutable parameter has a name of at most 253 characters and a value of at most 4096"
	// +optional
	MutableParameters map[string]string `json:"mutableParameters,omitempty"`

	// NodeExpansion says that the node has to grow the filesystem after the volume was expanded.
	//
	// +optional
	NodeExpansion bool `json:"nodeExpansion,omitempty"`

	// Use is the answer to the last question whether the node uses the volume; none if nobody asked.
	//
	// +optional
	Use *VolumeUse `json:"use,omitempty"`
}

// VolumeUse says whether a node uses a volume.
type VolumeUse struct {
	// Question is the value of UseQuestionAnnotation that is answered. The driver was asked after the worker had read it.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Question string `json:"question"`

	// InUse says that the volume is staged or published on the node, or may be.
	InUse bool `json:"inUse"`

	// Message says for people where it is in use, or why that is not known.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// Ordered returns the order of the LocalVolume and what came of it.
func (o *LocalVolume) Ordered() (*Order, *OrderStatus) { return &o.Spec.Order, &o.Status.OrderStatus }
