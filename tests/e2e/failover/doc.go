// Package failover removes a node from a real Kubernetes with two nodes, while a simulated cloud reports the state of
// its machine as the test dictates. It measures the time until the node's pod runs on the other node with its data. It
// also cuts a node off the network, once for long or many times, and kills the attaching components in the middle of
// their work.
package failover
