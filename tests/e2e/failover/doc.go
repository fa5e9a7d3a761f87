// Package failover takes a node away from a real Kubernetes with two nodes, while a cloud of which the test controls
// the truth says what has become of its machine, and measures how long it takes until the node's pod runs on the other
// one with its data. It also cuts a node off the network, once for long or many times, and kills what attaches in the
// middle of it.
package failover
