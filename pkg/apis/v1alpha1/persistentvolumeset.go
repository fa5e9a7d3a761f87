package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PersistentVolumeSet keeps a number of PersistentVolumes ready for claims of one StorageClass, so that a claim binds
// without waiting for the storage.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.minimumReplicas,statuspath=.status.unboundReplicas,selectorpath=.status.selector
// +kubebuilder:resource:scope=Cluster,shortName=pvset,categories=stowage
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.template.spec.storageClassName`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.spec.template.spec.capacity`
// +kubebuilder:printcolumn:name="Min",type=integer,JSONPath=`.spec.minimumReplicas`
// +kubebuilder:printcolumn:name="Max",type=integer,JSONPath=`.spec.maximumReplicas`
// +kubebuilder:printcolumn:name="Unbound",type=integer,JSONPath=`.status.unboundReplicas`
// +kubebuilder:printcolumn:name="Bound",type=integer,JSONPath=`.status.boundReplicas`
// +kubebuilder:printcolumn:name="Creating",type=integer,JSONPath=`.status.creatingReplicas`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PersistentVolumeSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PersistentVolumeSetSpec   `json:"spec"`
	Status PersistentVolumeSetStatus `json:"status,omitempty"`
}

// PersistentVolumeSetList is a list of PersistentVolumeSets.
//
// +kubebuilder:object:root=true
type PersistentVolumeSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PersistentVolumeSet `json:"items"`
}

// PersistentVolumeSetSpec says how many volumes of which kind are kept ready.
//
// +kubebuilder:validation:XValidation:rule="self.minimumReplicas <= self.maximumReplicas",message="minimumReplicas must not be greater than maximumReplicas"
// +kubebuilder:validation:XValidation:rule="self.selector.all(k, has(self.template.metadata.labels) && k in self.template.metadata.labels && self.template.metadata.labels[k] == self.selector[k])",message="the selector must match template.metadata.labels, or the set would not count the volumes that it creates"
// +kubebuilder:validation:XValidation:rule="!has(self.template.metadata) || !has(self.template.metadata.annotations) || !('stowage.dev/recycle' in self.template.metadata.annotations) || self.template.metadata.annotations['stowage.dev/recycle'] != 'true' || self.template.spec.persistentVolumeReclaimPolicy == 'Retain'",message="only volumes of the policy Retain are recycled, since others would be deleted meanwhile: set template.spec.persistentVolumeReclaimPolicy to Retain, or remove the annotation stowage.dev/recycle"
type PersistentVolumeSetSpec struct {
	// MinimumReplicas is the number of unbound volumes to keep ready.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	MinimumReplicas int32 `json:"minimumReplicas"`

	// MaximumReplicas bounds all volumes of the set, bound and released ones included.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	MaximumReplicas int32 `json:"maximumReplicas"`

	// Selector selects the volumes of the set by their labels. Volumes that others made count as well, and are never
	// deleted.
	//
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the selector cannot be changed: create another set"
	Selector map[string]LabelValue `json:"selector"`

	// Template describes the volumes that the set creates. A changed template rolls through the unbound volumes.
	Template PersistentVolumeTemplate `json:"template"`
}

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
type LabelValue string

// PersistentVolumeTemplate describes the volumes that a set creates.
type PersistentVolumeTemplate struct {
	// Metadata is copied to each volume.
	//
	// +optional
	Metadata TemplateMetadata `json:"metadata,omitempty"`

	// Spec says which kind of volume to create.
	Spec PersistentVolumeTemplateSpec `json:"spec"`
}

// TemplateMetadata is the part of an object's metadata that a template may give.
type TemplateMetadata struct {
	// Labels of each volume.
	//
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// Annotations of each volume.
	//
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PersistentVolumeTemplateSpec says which kind of volume to create. The StorageClass names the driver and its
// parameters.
type PersistentVolumeTemplateSpec struct {
	// StorageClassName is the class whose claims the volumes are for. Its provisioner must be the driver that the manager
	// serves.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StorageClassName string `json:"storageClassName"`

	// Capacity is the least size of each volume.
	Capacity resource.Quantity `json:"capacity"`

	// AccessModes of each volume, ReadWriteOnce if none are given.
	//
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:default={ReadWriteOnce}
	// +listType=set
	// +optional
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`

	// VolumeMode is Filesystem or Block.
	//
	// +kubebuilder:validation:Enum=Filesystem;Block
	// +kubebuilder:default=Filesystem
	// +optional
	VolumeMode corev1.PersistentVolumeMode `json:"volumeMode,omitempty"`

	// PersistentVolumeReclaimPolicy of each volume. The set deletes no volume of policy Retain, not even an unbound one.
	//
	// +kubebuilder:validation:Enum=Retain;Delete
	// +kubebuilder:default=Retain
	// +optional
	PersistentVolumeReclaimPolicy corev1.PersistentVolumeReclaimPolicy `json:"persistentVolumeReclaimPolicy,omitempty"`

	// MountOptions of each volume, in place of those of the StorageClass; the class's if none are given.
	//
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +optional
	MountOptions []string `json:"mountOptions,omitempty"`

	// VolumeAttributesClassName is the class of attributes that each volume is created with. Only claims that name the
	// same class bind to the volumes, and without one only claims that name none.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	VolumeAttributesClassName string `json:"volumeAttributesClassName,omitempty"`
}

// PersistentVolumeSetStatus is the state of the set as its manager last saw it.
type PersistentVolumeSetStatus struct {
	// ObservedGeneration is the generation of the spec that the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Driver is the CSI driver whose manager serves the set: the provisioner of its class when it was first seen.
	//
	// +optional
	Driver string `json:"driver,omitempty"`

	// BoundReplicas is the number of volumes that are bound to a claim, or being bound.
	//
	// +optional
	BoundReplicas int32 `json:"boundReplicas"`

	// UnboundReplicas is the number of volumes that a claim of the template's class, size and modes can bind to now.
	//
	// +optional
	UnboundReplicas int32 `json:"unboundReplicas"`

	// CreatingReplicas is the number of slots whose volumes are being created.
	//
	// +optional
	CreatingReplicas int32 `json:"creatingReplicas"`

	// DeletingReplicas is the number of volumes that are being deleted.
	//
	// +optional
	DeletingReplicas int32 `json:"deletingReplicas"`

	// RelabelledReplicas is the number of volumes that the set made and that its selector matches no more. They are in
	// no other number, and do not count against the maximum.
	//
	// +optional
	RelabelledReplicas int32 `json:"relabelledReplicas"`

	// SurplusSeconds is for how long there have been more unbound volumes than the minimum. It is written now and then,
	// so that a new manager does not begin anew.
	//
	// +optional
	SurplusSeconds int32 `json:"surplusSeconds,omitempty"`

	// Selector is the selector in the form of the scale subresource.
	//
	// +optional
	Selector string `json:"selector,omitempty"`

	// Classes are the StorageClasses in which there may be unbound volumes of the set, those of earlier templates among
	// them. An admission policy refuses claims with a data source there: such a volume is empty.
	//
	// +listType=set
	// +optional
	Classes []string `json:"classes,omitempty"`

	// Slots are the volumes that the manager intends to create. A slot is written before its volume is asked for and
	// stays until the PersistentVolume of that name exists, so that a manager that starts anew asks for the same volume.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Slots []VolumeSlot `json:"slots,omitempty"`

	// Orders are what the volumes of the slots are made from. Slots that were written with the same template and class
	// share one.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Orders []VolumeOrder `json:"orders,omitempty"`

	// Conditions of the set. Ready says whether the minimum is met and, if not, why.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// VolumeSlot is the intent to create one volume. Its order has all that the driver is asked for, since a repeated
// request must be the same when template or class have changed or gone meanwhile.
type VolumeSlot struct {
	// Name of the PersistentVolume, and of the volume at the driver. It is never used twice.
	Name string `json:"name"`

	// Manager is the process that asks the driver for the volume. No other asks before it has written its own name here,
	// so that one that finds another's name, or none, knows that the volume may exist already.
	//
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Manager string `json:"manager,omitempty"`

	// Order is the name of the order that the volume is made from.
	//
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Order string `json:"order,omitempty"`

	// Template is what managers before there were orders wrote; the next one makes an order of it.
	//
	// +optional
	Template *PersistentVolumeTemplate `json:"template,omitempty"`

	// Class is what managers before there were orders wrote; the next one makes an order of it.
	//
	// +optional
	Class *SlotClass `json:"class,omitempty"`

	// Segments is the place that the volume is asked for; empty for a driver without topology.
	//
	// +kubebuilder:validation:MaxProperties=8
	// +optional
	Segments map[string]string `json:"segments,omitempty"`
}

// VolumeOrder is what volumes are made from.
type VolumeOrder struct {
	// Name is a digest of the rest.
	Name string `json:"name"`

	// Template as it was when a slot was written.
	Template PersistentVolumeTemplate `json:"template"`

	// Class is what the StorageClass and the VolumeAttributesClass said when a slot was written.
	Class SlotClass `json:"class"`
}

// SlotClass is the part of a StorageClass and of a VolumeAttributesClass that a volume depends on.
type SlotClass struct {
	// Parameters that the driver is given.
	//
	// +kubebuilder:validation:MaxProperties=512
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`

	// FSType is the filesystem of the class, for volumes of mode Filesystem.
	//
	// +optional
	FSType string `json:"fsType,omitempty"`

	// MountOptions of the class.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	MountOptions []string `json:"mountOptions,omitempty"`

	// MutableParameters are those of the VolumeAttributesClass.
	//
	// +kubebuilder:validation:MaxProperties=512
	// +optional
	MutableParameters map[string]string `json:"mutableParameters,omitempty"`
}

// MaxSlots is how many slots a set has at most.
const MaxSlots = 64

// The conditions of a set and the names that its volumes bear.
const (
	// ConditionReady says whether the minimum of unbound volumes is there.
	ConditionReady = "Ready"

	// VolumeSetFinalizer keeps a PersistentVolume that a set made until its volume is deleted, and a set until its unbound
	// volumes are.
	VolumeSetFinalizer = "stowage.dev/volumeset"

	// VolumeSlotFinalizer keeps a PersistentVolume of policy Retain that a set made until its slot is gone from the set.
	// On volumes of policy Delete, VolumeSetFinalizer does the same.
	VolumeSlotFinalizer = "stowage.dev/volumeset-slot"

	// VolumeSetAnnotation names the set that made a PersistentVolume, by UID.
	VolumeSetAnnotation = "stowage.dev/volumeset-uid"

	// TemplateAnnotation is the digest of the template that a PersistentVolume was made from.
	TemplateAnnotation = "stowage.dev/template"
)
