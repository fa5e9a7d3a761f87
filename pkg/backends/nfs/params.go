package nfs

import (
	"cmp"
	"strconv"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// The values of the parameters onDelete and sourceInUse.
const (
	deleteData  = "delete"
	retainData  = "retain"
	archiveData = "archive"

	copyInUse = "copy"
)

// defaultPermissions are the permissions of the root of a volume without a source.
const defaultPermissions = 0o755

// Parameters are the parameters of a StorageClass.
type Parameters struct {
	Server           string `param:"server" doc:"Name or IP address of the NFS server."`
	Share            string `param:"share" doc:"Absolute path that the server exports, or a directory below it."`
	ShareName        string `param:"shareName" doc:"A share of the driver's configuration, in place of server and share."`
	SubDir           string `param:"subDir" doc:"Directory of the volume below the share, made by the driver; it may contain ${pvc.metadata.name}, ${pvc.metadata.namespace} and ${pv.metadata.name}. By default the volume's name."`
	OnDelete         string `param:"onDelete" enum:"delete|retain|archive" default:"delete" doc:"What becomes of a deleted volume's directory: it is removed, left where it is, or renamed to archived-<directory>-<number>."`
	MountPermissions string `param:"mountPermissions" doc:"Permissions of the volume's root directory in octal digits; by default, and for 0, those of the source of a copy, and else 0755."`
	NFSVersion       string `param:"nfsvers" enum:"3|4|4.0|4.1|4.2" doc:"Version of NFS that is spoken; by default the newest that the server has. 4 means any 4.x."`
	SourceInUse      string `param:"sourceInUse" enum:"refuse|copy" default:"refuse" doc:"What becomes of the clone of a volume that is written to meanwhile: it is refused, or made of a copy that is not of one instant."`
}

// Mutable are the parameters of a VolumeAttributesClass.
type Mutable struct {
	OnDelete *string `param:"onDelete" enum:"delete|retain|archive" doc:"What becomes of a deleted volume's directory: it is removed, left where it is, or renamed to archived-<directory>-<number>."`
}

// SnapshotParameters are the parameters of a VolumeSnapshotClass.
type SnapshotParameters struct {
	SourceInUse string `param:"sourceInUse" enum:"refuse|copy" default:"refuse" doc:"What becomes of the snapshot of a volume that is written to meanwhile: it is refused, or made of a copy that is not of one instant."`
}

// permissions parses mountPermissions; 0 for none. Kinds: Invalid.
func (p Parameters) permissions() (uint32, error) {
	mode, err := strconv.ParseUint(cmp.Or(p.MountPermissions, "0"), 8, 32)
	if err != nil || mode > 0o7777 {
		return 0, backends.Errorf(backends.Invalid, "mountPermissions is %q: use octal digits such as 0770",
			secret.Option(p.MountPermissions))
	}
	return uint32(mode), nil
}
