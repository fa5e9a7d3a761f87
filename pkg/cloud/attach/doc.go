// Package attach attaches and detaches volumes as the attach/detach proposal asks:
//
//   - One operation runs on a volume at a time. Two callers that request the same operation share it.
//   - Attaching succeeds if the volume is attached already, and detaching succeeds if it is not attached, whoever did
//     it.
//   - If the cloud attaches a volume to one node only, it is never asked to attach it to a second node: that is InUse,
//     with the node's name. If the cloud attaches it to several nodes (Volume.Shared), the package does not keep it for
//     one node: others can attach it, now or by a late request, and no look proves that they have not. Backends do not
//     offer that use.
//   - The number of operations is bounded, per node and overall. Detachments have their own bound, because attachments
//     wait for them.
//   - The cloud's current answer is the state of the world. The effect of a request is never assumed. Recent requests
//     and ended attachments are remembered because a read of the cloud may be older.
//
// An attachment that the cloud never completes is reported, and only its own caller ends it: see stuck.
//
// After the cloud has accepted a request, it works for seconds to minutes. A caller whose time is over gets Busy and
// retries. The next operation starts from the cloud's answer at that time, so the outcome of the previous operation
// does not matter.
package attach
