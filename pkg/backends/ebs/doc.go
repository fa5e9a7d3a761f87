// Package ebs is the backend for Amazon EBS volumes.
//
// EC2 keeps all the state: a volume's name, fingerprint and owner are tags on it, so that nothing has to be remembered
// here and any number of controllers agree. Handles are EC2's own IDs, and parameters have the names that
// aws-ebs-csi-driver gives them, so that classes and static volumes move over by a change of the provisioner's name.
//
//   - A volume is made with a client token that follows from its name. One whose making was cut short, on whichever
//     side, is found by its tag or made once more with the same token, which is the same volume. See create.go.
//   - Whose a volume or snapshot is, its tag says, and what is not this cluster's is neither changed nor read: see
//     owner.go.
//   - Every request that changes something is sent once, under a deadline of its own, and repeated only when EC2
//     refused it for its rate. What came of one whose answer was lost is looked up; it is never undone.
//   - One read proves nothing: it may be older than the one before. EC2's answer to a request that changes something
//     decides what is gone, detached or taken (pkg/cloud/known, unseen.go, there.go). Only what was made a moment ago
//     it may not know everywhere yet (born.go).
//   - Reads are shared by all who ask at a time (pkg/cloud/batch), and so are the looks of those who wait
//     (pkg/cloud/wait).
//   - Attaching and detaching are pkg/cloud/attach over adapter.go.
//   - Growing and changing one volume at the same time is one ModifyVolume, since a volume bears few of them a day.
//
// On the node a volume is found by the serial number of its NVMe controller, which is its ID. Instances whose disks are
// not NVMe (Xen) cannot prove which disk is which and are not supported.
//
// Which instance a node is, it finds out from those near it: the instance's metadata service, or else the
// orchestrator's object for the node (identify.go). Nodes ask EC2 for the attach limit only, and do without when they
// may not (limit.go).
package ebs
