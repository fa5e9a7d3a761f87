// Package ebs is the backend for Amazon EBS volumes.
//
// EC2 keeps all the state. A volume's name, fingerprint and owner are tags of it, so the backend stores nothing itself,
// and any number of controllers agree. Handles are EC2's own IDs. Parameters have the names that aws-ebs-csi-driver
// uses, so classes and static volumes are migrated by a change of the provisioner's name.
//
//   - A volume is created with a client token that is derived from its name. If the creation is interrupted, on either
//     side, the volume is found by its tag, or requested again with the same token, which gives the same volume. See
//     create.go.
//   - The tag of a volume or snapshot names its owner, by a read of the last seconds. Those of other clusters are
//     neither changed nor read: see owner.go.
//   - Every request that changes something is sent once, under a deadline of its own. It is repeated only if EC2
//     refused it for its rate. If its answer is lost, its outcome is looked up; it is never undone.
//   - One read proves nothing: it may be older than the read before. EC2's answer to a request that changes something
//     decides what is gone, detached or taken (pkg/cloud/known, unseen.go, there.go). The exception is a thing created
//     a moment ago, which EC2 may not know everywhere yet (born.go).
//   - A refusal is final only once EC2 has shown nothing of the name for long enough: see refusals.go.
//   - Concurrent callers share reads (pkg/cloud/batch), and concurrent waits share looks (pkg/cloud/wait).
//   - pkg/cloud/attach attaches and detaches, by means of adapter.go.
//   - Growing and changing a volume at the same time takes one ModifyVolume, since EC2 allows few of them per volume
//     and day.
//
// The node finds a volume by the serial number of its NVMe controller, which is the volume's ID. Instances whose disks
// are not NVMe (Xen) cannot prove which disk is which and are not supported.
//
// A node finds out which instance it is from the instance's metadata service, or else from the orchestrator's object
// for the node (identify.go). Nodes ask EC2 for the attach limit, and assume one if they may not (limit.go).
package ebs
