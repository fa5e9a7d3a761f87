// Package failover frees the volumes of a node whose machine is proven to be off, so that pods run elsewhere within
// seconds and not after the six minutes, or the person, that Kubernetes waits for otherwise.
//
// Kubernetes knows that a node is silent, and not why. Its machine may be off, or it may be cut off from the API server
// and still write to its volumes. The provider of the machine knows. When a node stops renewing its Lease, or is not
// Ready, the driver is asked through its socket what the provider says of the machine (package machines). If the
// machine is stopped or terminated, the node gets the taint node.kubernetes.io/out-of-service with the effect
// NoExecute. Kubernetes then evicts its pods and detaches the volumes of those that are gone, of all drivers. Evicted
// pods with claims are deleted at once: Kubernetes itself waits for a minute or so. The taint goes once the node is
// Ready again and reports no volume in use.
//
// # What is proof
//
//   - The provider says of this very machine that it is stopped or terminated. Running, stopping, not found, an error
//     and silence are no proof, and change nothing.
//   - The machine is the node's: the ID that the node has registered for the driver, in a CSINode that belongs to this
//     Node object, and the providerID of the Node name the same one.
//   - The answer is not an old one. Either it was given Options.Lag after the node's last sign of life: what a provider
//     says is never older. Or this process has seen the machine run, Options.Lag after the node's last start, and the
//     answer is of that start or a later one. An answer that is older than one before it is no proof.
//   - The node has missed a renewal of its Lease: a provider that contradicts a node which lives is not believed.
//   - The node gave no sign of life since, and a second answer, asked for right before the taint is written, is proof
//     too. The Node object has not changed since it was read before that second question.
//
// # Who may be alive too
//
// A second manager, or one that lost its lease and woke up, does nothing that the first one would not do: proof is
// sought anew for each taint, nothing is written later than a few seconds after the answer, and the API server refuses
// a write over a Node that has changed. Each decision is made from what is read. What is remembered between two looks
// delays a taint, but for one thing: a machine that was seen to run needs no wait for old answers.
//
// # Whose taint
//
// The taint's value is the driver's name. One with another value is an operator's: it is neither changed nor removed.
//
// # Nodes that are gone
//
// A Node that is deleted before its machine is proven to be off cannot be tainted, and Kubernetes then waits for six
// minutes for its kubelet. Its VolumeAttachments are deleted once the provider says that the machine is terminated, and
// no pod that uses volumes is bound to the node. A terminated machine never runs again: nothing can change between the
// answer and the deletion, so that neither the age of the answer nor a second one matters.
//
// # What a live kubelet keeps
//
// The driver asks before it detaches (package holds). As long as a kubelet reports a volume in use and may be alive it
// stays attached, whatever made Kubernetes ask for it. The Node must be the machine's that is asked about. Silence is
// counted by what this process has seen: one that has just started, or whose cache lags behind, has seen none. It
// proves nothing by itself, since the API server may have been away: our taint, the provider, or a person and
// kube-controller-manager together must say the same, and a taint that was there before the last sign of life says
// nothing. Without a Node only the provider can say anything: that the machine is terminated, or for Options.Lag that
// it is stopped or missing.
//
// # Files
//
// plan.go decides, and is pure. record.go is what a manager remembers of a node. watch.go is the loop, look.go reads
// the world for it, reconcile.go writes taints, pods.go deletes pods, lost.go frees nodes that are gone, hold.go
// answers the driver, with what ended.go remembers. report.go has metrics and events.
package failover
