package driver

import (
	"maps"

	"google.golang.org/grpc/codes"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// answer is one cell of the table (RPC, Kind) -> code, with its source: a row of the error tables of the CSI
// specification 1.13, or the function of a sidecar that decides what comes next. docs/design/014-answers.md shows all
// cells.
type answer struct {
	code   codes.Code
	source string
}

// row holds the cells of one RPC.
type row map[backends.Kind]answer

// The sources of cells, besides the RPC's own rows. Versions: external-provisioner 6.3.0, external-attacher 4.12.0,
// external-resizer 2.2.0, external-snapshotter 8.6.0, Kubernetes 1.36.3.
const (
	bySpec        = "spec.md 1.13, error table of the RPC: "
	byScheme      = "spec.md 1.13, Error Scheme: "
	byProvisioner = "external-provisioner pkg/controller/controller.go checkError: "
	byResizer     = "external-resizer pkg/util/util.go IsFinalError, IsInfeasibleError: "
	byModifier    = "external-resizer pkg/modifycontroller/modify_volume.go controllerModifyVolumeWithTarget: "
	bySnapshotter = "external-snapshotter pkg/sidecar-controller/snapshot_controller.go isCSIFinalError: "
	byAttacher    = "external-attacher pkg/attacher/attacher.go isFinalError: "
	byKubelet     = "kubernetes pkg/volume/csi/csi_client.go isFinalError: "
)

// general returns the cells of an RPC that has none of its own.
func general() row {
	return row{
		backends.Unknown: {codes.Internal,
			"gRPC status codes: INTERNAL; every sidecar asks again for what this row is for"},
		backends.Invalid:    {codes.InvalidArgument, byScheme + "Invalid or unsupported field in the request"},
		backends.NotFound:   {codes.NotFound, bySpec + "Volume (or snapshot, node, group) does not exist"},
		backends.Exists:     {codes.AlreadyExists, bySpec + "Already exists (or published) but is incompatible"},
		backends.OutOfRange: {codes.OutOfRange, bySpec + "Unsupported capacity_range"},
		backends.Exhausted: {codes.ResourceExhausted,
			bySpec + "Unable to provision, max volumes attached, not enough space"},
		backends.InUse: {codes.FailedPrecondition,
			bySpec + "Volume (or snapshot, group) in use, published to another node; cannot snapshot volumes together"},
		backends.Busy:        {codes.Aborted, byScheme + "Operation pending for volume"},
		backends.Unsupported: {codes.Unimplemented, byScheme + "Call not implemented"},
		backends.Denied:      {codes.PermissionDenied, byScheme + "Permission denied"},
		backends.Unavailable: {codes.Unavailable,
			"every sidecar's isFinalError: UNAVAILABLE is not final, the operation may be in progress"},
		backends.Unusable: {codes.Unavailable,
			"every sidecar's isFinalError: UNAVAILABLE is not final, the thing may exist"},
	}
}

// particular returns the cells in which an RPC differs.
func particular() map[string]row {
	asked := func(source string) answer {
		return answer{codes.Unavailable, source + "INTERNAL is final, and of an unknown failure nobody knows what it left"}
	}
	snapshot := snapshots(asked(bySnapshotter))
	return map[string]row{
		"CreateVolume": {
			backends.Unknown:     asked(byProvisioner),
			backends.InUse:       {codes.FailedPrecondition, byProvisioner + "final: the contract says that nothing was made"},
			backends.Unsupported: {codes.InvalidArgument, bySpec + "Source incompatible or not supported"},
		},
		"ControllerPublishVolume":   {backends.Unknown: asked(byAttacher)},
		"ControllerExpandVolume":    expand(),
		"ControllerModifyVolume":    modify(),
		"CreateSnapshot":            snapshot,
		"CreateVolumeGroupSnapshot": snapshot,
		"NodeStageVolume":           stage(asked(byKubelet)),
		"NodePublishVolume": {
			backends.Unknown:     asked(byKubelet),
			backends.Unsupported: {codes.FailedPrecondition, bySpec + "Exceeds capabilities; Staging target path not set"},
		},
	}
}

// snapshots makes it possible to delete a snapshot for which there is no room. After a code that is not final,
// csi-snapshotter keeps the snapshot and its source claim, and takes the snapshot once there is room, wanted or not.
// The specification's row says "Caller SHOULD fail this request", but its own code makes this caller do the opposite.
func snapshots(unknown answer) row {
	return row{
		backends.Unknown: unknown,
		backends.Exhausted: {codes.OutOfRange,
			bySnapshotter + "RESOURCE_EXHAUSTED is not final, so that it could not be deleted, and the contract says that " +
				"nothing was made; OUT_OF_RANGE has it fail, as the row's recovery says, and asked for again"},
	}
}

// expand makes it possible to lower a claim that asked for too much. After a code that is not final, csi-resizer keeps
// the size. It takes FAILED_PRECONDITION to mean that the driver can grow only volumes that no pod uses.
func expand() row {
	return row{
		backends.Exhausted: {codes.OutOfRange,
			byResizer + "RESOURCE_EXHAUSTED is not final, so the claim could not be lowered; OUT_OF_RANGE is infeasible"},
		backends.InUse: {codes.Internal,
			"external-resizer pkg/controller/controller.go inUseError: FAILED_PRECONDITION means offline expansion only; " +
				"INTERNAL is final and tried again"},
	}
}

// modify makes it possible to give a claim another class if its class cannot be had: csi-resizer keeps the target after
// a code that is not final.
func modify() row {
	infeasible := answer{codes.InvalidArgument,
		byModifier + "RESOURCE_EXHAUSTED keeps the target class; INVALID_ARGUMENT marks it infeasible"}
	return row{
		backends.Exhausted:  infeasible,
		backends.OutOfRange: {codes.InvalidArgument, byModifier + "only INVALID_ARGUMENT is infeasible"},
		backends.InUse: {codes.Internal,
			byModifier + "INTERNAL is final, so that the class can be changed, and tried again"},
	}
}

// stage keeps the kubelet from forgetting a volume that is staged in another way than requested. When NodeUnstageVolume
// has failed, the kubelet does not know whether the volume is staged. It calls NodeStageVolume for a new pod, with
// other mount options if the PersistentVolume was edited, and after a final code it never unstages the volume: an
// attached disk may then be detached beneath its mount. The specification's row says ALREADY_EXISTS, and that the
// arguments must be fixed. But the arguments are the volume's own by now, and the existing staging must go.
//
// NodePublishVolume follows its row: NodeUnstageVolume refuses while the volume shows at a target, so nothing is
// detached beneath a forgotten volume.
func stage(unknown answer) row {
	return row{
		backends.Unknown: unknown,
		backends.Exists: {codes.Unavailable,
			byKubelet + "ALREADY_EXISTS is final, so that a volume that is staged would be forgotten, and might be " +
				"detached beneath its mount; after UNAVAILABLE it is unstaged once no pod wants it"},
		backends.Unsupported: {codes.FailedPrecondition, bySpec + "Exceeds capabilities"},
	}
}

// answers is the only map from failures to gRPC codes.
type answers map[string]row

func newAnswers() answers {
	table := answers{}
	for rpc, own := range particular() {
		table[rpc] = general()
		maps.Copy(table[rpc], own)
	}
	table[""] = general()
	return table
}

// of returns the cell of an RPC. An unknown Kind counts as Unknown.
func (a answers) of(rpc string, kind backends.Kind) answer {
	cells, ok := a[rpc]
	if !ok {
		cells = a[""]
	}
	if cell, ok := cells[kind]; ok {
		return cell
	}
	return cells[backends.Unknown]
}
