package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeStorage is what one node has of local volumes. It bears the node's name. The master writes its spec and metadata,
// the worker on the node its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,path=nodestorages,singular=nodestorage,shortName=nstor,categories=stowage
// +kubebuilder:printcolumn:name="Found",type=integer,JSONPath=`.status.found`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.available`
// +kubebuilder:printcolumn:name="Offered",type=integer,JSONPath=`.status.offered`
// +kubebuilder:printcolumn:name="Deleting",type=integer,JSONPath=`.status.deleting`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeStorage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodeStorageSpec   `json:"spec,omitempty"`
	Status NodeStorageStatus `json:"status,omitempty"`
}

// NodeStorageList is a list of NodeStorages.
//
// +kubebuilder:object:root=true
type NodeStorageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeStorage `json:"items"`
}

// NodeStorageSpec is what the master has offered and wants deleted. Nobody else writes it.
type NodeStorageSpec struct {
	// Offers are the volumes that have a PersistentVolume, are to have one, or had one and may hold data. An offer is
	// written before its PersistentVolume, which is made when the worker says that the volume is Offered.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=volume
	// +optional
	Offers []VolumeOffer `json:"offers,omitempty"`

	// DeleteOperations are the deletions that are wanted, each under an id that is used once.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=id
	// +optional
	DeleteOperations []DeleteRequest `json:"deleteOperations,omitempty"`
}

// VolumeOffer records that a volume is offered by a PersistentVolume. All that is needed at its end stands here, as it
// was at its beginning.
//
// +kubebuilder:validation:XValidation:rule="self.persistentVolume == oldSelf.persistentVolume && self.wipePolicy == oldSelf.wipePolicy && (self.reclaimPolicy == oldSelf.reclaimPolicy || self.reclaimPolicy == 'Retain') && self.path == oldSelf.path && self.volumeMode == oldSelf.volumeMode && self.storageClassName == oldSelf.storageClassName",message="an offer cannot be changed, but for becoming retained, or of the policy Retain: remove it and write another"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.retained) && oldSelf.retained) || (has(self.retained) && self.retained)",message="an offer stays retained until it is removed"
type VolumeOffer struct {
	// Volume is the name of the local volume.
	Volume VolumeName `json:"volume"`

	// PersistentVolume is the name of the volume's PersistentVolume, which is never used twice.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PersistentVolume string `json:"persistentVolume"`

	// StorageClassName is the class of the PersistentVolume.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StorageClassName string `json:"storageClassName"`

	// Path is where the volume is on its node.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path"`

	// Capacity of the PersistentVolume.
	Capacity resource.Quantity `json:"capacity"`

	// VolumeMode is Filesystem or Block.
	//
	// +kubebuilder:validation:Enum=Filesystem;Block
	VolumeMode corev1.PersistentVolumeMode `json:"volumeMode"`

	// ReclaimPolicy is what the class said when the offer was written, or Retain once its PersistentVolume had that.
	//
	// +kubebuilder:validation:Enum=Retain;Delete
	ReclaimPolicy corev1.PersistentVolumeReclaimPolicy `json:"reclaimPolicy"`

	// WipePolicy is how the volume is wiped.
	WipePolicy WipePolicy `json:"wipePolicy"`

	// Retained says that the PersistentVolume was deleted under the policy Retain. The volume is neither wiped nor offered
	// until an operator names it in the annotation stowage.dev/reclaim.
	//
	// +optional
	Retained bool `json:"retained,omitempty"`
}

// VolumeName is the name of a local volume on its node.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
type VolumeName string

// WipePolicy says what happens to the data of a volume before it is offered again. For a volume of mode Filesystem
// every policy but none removes all files.
//
// +kubebuilder:validation:Enum=discard;zero;shred;signatures;none
type WipePolicy string

// The wipe policies.
const (
	// WipeDiscard tells the device to drop all blocks, reads all of it, and writes zeros where it is not zero.
	WipeDiscard WipePolicy = "discard"
	// WipeZero makes every byte zero.
	WipeZero WipePolicy = "zero"
	// WipeShred overwrites every byte with random data, then with zeros.
	WipeShred WipePolicy = "shred"
	// WipeSignatures removes what tells of filesystems and partitions. The data stay readable.
	WipeSignatures WipePolicy = "signatures"
	// WipeNone leaves the data as they are.
	WipeNone WipePolicy = "none"
)

// DeleteRequest asks the worker to wipe a volume.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a delete operation cannot be changed: each deletion has an id of its own"
type DeleteRequest struct {
	// ID of the deletion, never used twice.
	ID OperationID `json:"id"`

	// Volume is the name of the local volume.
	Volume VolumeName `json:"volume"`

	// Policy says how the volume is wiped.
	Policy WipePolicy `json:"policy"`
}

// OperationID is the id of a deletion.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
type OperationID string

// NodeStorageStatus is what the worker found and did. Nobody else writes it.
type NodeStorageStatus struct {
	// LocalVolumes are the disks, partitions and mount points that the worker's configuration selects.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=name
	// +optional
	LocalVolumes []LocalVolumeStatus `json:"localVolumes,omitempty"`

	// DeleteOperations tell how the deletions of the spec go.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=id
	// +optional
	DeleteOperations []DeleteStatus `json:"deleteOperations,omitempty"`

	// Pools are those of the node's driver, which volumes are taken from.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Pools []PoolStatus `json:"pools,omitempty"`

	// Found is the number of local volumes.
	//
	// +optional
	Found int32 `json:"found"`

	// Available is the number of volumes that could be offered now.
	//
	// +optional
	Available int32 `json:"available"`

	// Offered is the number of volumes that the spec offers and that are there.
	//
	// +optional
	Offered int32 `json:"offered"`

	// Deleting is the number of deletions that are not complete.
	//
	// +optional
	Deleting int32 `json:"deleting"`

	// Conditions of the node's storage. Ready says whether the worker finds disks and, if not, why.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
}

// PoolStatus is what volumes are taken from.
type PoolStatus struct {
	// Name of the pool in the configuration of the node's driver.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Type says what the pool's volumes are, in the driver's word.
	//
	// +kubebuilder:validation:MaxLength=63
	Type string `json:"type"`

	// Available is how much more can be made.
	Available Size `json:"available"`

	// Largest is the size of the largest volume that could be made; none when it is not known.
	//
	// +optional
	Largest Size `json:"largest,omitempty"`

	// Problem says why the pool cannot be used now.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Problem string `json:"problem,omitempty"`
}

// LocalVolumeStatus is a disk, a partition or a mount point that was found.
type LocalVolumeStatus struct {
	// Name is a digest of the identity.
	Name VolumeName `json:"name"`

	// Path is where the volume is used: a link to the device that the worker keeps right, or the mount point.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path"`

	// Device is the device's node at present, such as /dev/nvme1n1, for people to read.
	//
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Device string `json:"device,omitempty"`

	// Identity is what the disk or filesystem says of itself.
	//
	// +kubebuilder:validation:MaxLength=1024
	Identity string `json:"identity"`

	// Capacity of the device, or of the filesystem.
	Capacity Size `json:"capacity"`

	// VolumeMode is Block for a device, Filesystem for a mount point.
	//
	// +kubebuilder:validation:Enum=Filesystem;Block
	VolumeMode corev1.PersistentVolumeMode `json:"volumeMode"`

	// State says whether the volume can be offered.
	State LocalVolumeState `json:"state"`

	// Message says why it cannot.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// LocalVolumeState says whether a volume can be offered.
//
// +kubebuilder:validation:Enum=Available;Offered;InUse;NotBlank;Dirty;Unusable
type LocalVolumeState string

// The states of a local volume.
const (
	// VolumeAvailable is a volume that nobody uses and that holds nothing.
	VolumeAvailable LocalVolumeState = "Available"
	// VolumeOffered is a volume that the spec offers, and that nobody used when the worker had heard of that. What is on
	// it is nobody's business.
	VolumeOffered LocalVolumeState = "Offered"
	// VolumeInUse is a volume that somebody else uses.
	VolumeInUse LocalVolumeState = "InUse"
	// VolumeNotBlank is a volume that holds something.
	VolumeNotBlank LocalVolumeState = "NotBlank"
	// VolumeDirty is a volume that was offered once and was not wiped since, or not as a whole.
	VolumeDirty LocalVolumeState = "Dirty"
	// VolumeUnusable is a volume that cannot be looked at, is too small, or cannot be told from another.
	VolumeUnusable LocalVolumeState = "Unusable"
)

// DeleteStatus tells how one deletion goes.
type DeleteStatus struct {
	// ID of the deletion.
	ID OperationID `json:"id"`

	// Volume is the name of the local volume.
	Volume VolumeName `json:"volume"`

	// State of the deletion. One in state Error is tried again.
	State DeleteState `json:"state"`

	// Message says what went wrong.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`

	// Progress in percent.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	Progress int32 `json:"progress,omitempty"`
}

// DeleteState is how far a deletion is.
//
// +kubebuilder:validation:Enum=Requested;InProgress;Complete;Error
type DeleteState string

// The states of a deletion.
const (
	DeleteRequested  DeleteState = "Requested"
	DeleteInProgress DeleteState = "InProgress"
	DeleteComplete   DeleteState = "Complete"
	DeleteError      DeleteState = "Error"
)

// The names by which local volumes are known on other objects.
const (
	// LocalVolumeFinalizer keeps a PersistentVolume until its local volume is wiped, and a NodeStorage until nothing of it
	// is offered.
	LocalVolumeFinalizer = "stowage.dev/local-volume"

	// LocalVolumeProvisioner stands in pv.kubernetes.io/provisioned-by of the PersistentVolumes of found volumes. It is no
	// CSI driver.
	LocalVolumeProvisioner = "stowage.dev/local-volumes"

	// NodeStorageAnnotation names the node of a PersistentVolume of a found volume.
	NodeStorageAnnotation = "stowage.dev/node"

	// LocalVolumeAnnotation names the local volume of a PersistentVolume.
	LocalVolumeAnnotation = "stowage.dev/local-volume"

	// ReclaimAnnotation of a NodeStorage names volumes, with commas between them, that are to be wiped and offered again.
	ReclaimAnnotation = "stowage.dev/reclaim"

	// HostnameAnnotation of a NodeStorage is the label kubernetes.io/hostname with which volumes of its node were offered
	// first. Nothing is offered while the Node has another.
	HostnameAnnotation = "stowage.dev/hostname"

	// ForgetAnnotation of a NodeStorage, with the value "true", gives up bound volumes of a node that is gone. Else it
	// names volumes, with commas between them, that are gone for good, or that are not to be wiped though
	// ReclaimAnnotation named them. None of these is offered.
	ForgetAnnotation = "stowage.dev/forget"
)
