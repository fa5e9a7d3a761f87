// Package history checks the behaviour of a backend for a cloud's disks. Callers record each of their calls, the
// simulated cloud provides the true states of each volume, and Check compares the two: a result that an orchestrator
// got must have been true, and a state that it relied on must have lasted.
//
// The invariants are those of the CSI specification for a plugin whose calls are repeated until they succeed
// ("Timeouts", "Interactions between volume lifecycle calls"): no volume is leaked, no returned volume is deleted
// without a request, a name stands for one volume, no volume is on two nodes, and every call ends by its deadline.
package history
