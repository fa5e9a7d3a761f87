// Package history judges what a backend for a cloud's disks has done. Callers note each of their calls, the simulated
// cloud tells what was true of each volume at which time, and Check holds the one against the other: what an
// orchestrator was told must have been so, and what it relied on must have lasted.
//
// The invariants are those of the CSI specification for a plugin whose calls are repeated until they succeed
// ("Timeouts", "Interactions between volume lifecycle calls"): no volume is leaked, none is deleted that was handed
// out, a name stands for one volume, no volume is on two nodes, and every call ends by its deadline.
package history
