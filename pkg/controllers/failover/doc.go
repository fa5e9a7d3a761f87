// Package failover frees the volumes of a node whose machine is proven to be off, so that pods run elsewhere within
// seconds. Otherwise Kubernetes waits six minutes, or for a person.
//
// Kubernetes knows that a node is silent, but not why. Its machine may be off, or it may be disconnected from the API
// server and still write to its volumes. The provider of the machine knows. When a node stops renewing its Lease, or is
// not Ready, the manager asks the driver through its socket for the provider's report about the machine (package
// machines). If the machine is stopped or terminated, the node gets the taint node.kubernetes.io/out-of-service with
// the effect NoExecute. Kubernetes then evicts the node's pods and detaches the volumes of deleted pods, for all
// drivers. Evicted pods with claims are deleted at once: Kubernetes itself waits for a minute or so. The taint is
// removed once the node is Ready again and reports no volume in use.
//
// # What is proof
//
//   - The provider reports this very machine as stopped or terminated. Running, stopping, not found, an error and
//     silence are no proof, and change nothing.
//   - The machine is the node's: the ID registered for the driver, in a CSINode that belongs to this Node object, and
//     the providerID of the Node name the same machine.
//   - The answer is not outdated. Either it was requested at least Options.Lag after the node's last sign of life: a
//     provider's answer is never older than Options.Lag. Or this process has seen the machine run, Options.Lag after
//     the node's last start, and the answer is about that start or a later one. An answer that is older than an earlier
//     answer is no proof.
//   - The node has missed a renewal of its Lease: a provider that contradicts a live node is not believed.
//   - The node has given no sign of life since, and a second answer, requested right before the taint is written, is
//     proof too. The Node object has not changed since it was read before that second question.
//
// # Who may be alive too
//
// A second manager, or one that lost its lease and resumed, does nothing that the leader would not do. Each taint needs
// a new proof, nothing is written later than a few seconds after the answer, and the API server refuses to write a Node
// that has changed. Each decision is made from data that was just read. The memory between two passes only delays a
// taint, with one exception: a machine that was seen to run needs no wait for outdated answers.
//
// # Whose taint
//
// The taint's value is the driver's name. A taint with another value is an operator's: it is neither changed nor
// removed.
//
// # Nodes that are gone
//
// A Node that is deleted before its machine is proven to be off cannot be tainted, and Kubernetes then waits six
// minutes for its kubelet. Its VolumeAttachments are deleted once the provider reports the machine as terminated and no
// pod that uses volumes is bound to the node. A terminated machine never runs again, so nothing can change between the
// answer and the deletion. Neither the age of the answer nor a second answer matters.
//
// # What a live kubelet keeps
//
// The driver asks before it detaches (package holds). A volume stays attached while a kubelet reports it in use and may
// be alive, whatever made Kubernetes request the detachment. The Node must belong to the machine in question. Silence
// is measured by this process: a process that has just started, or whose cache lags, has seen none. Silence alone
// proves nothing, since the API server may have been down. Our taint, the provider, or a person and
// kube-controller-manager together must confirm that the kubelet is dead, and a taint from before the last sign of life
// does not count. Without a Node only the provider can confirm it: by reporting that the machine is terminated, or for
// Options.Lag that it is stopped or missing.
//
// # Files
//
// plan.go decides, and is pure. record.go has a manager's memory of a node. watch.go has the loop, look.go reads the
// nodes, reconcile.go writes taints, pods.go deletes pods, lost.go frees the volumes of deleted nodes, and hold.go
// answers the driver, using the memory in ended.go. report.go has metrics and events.
package failover
