// Command stowage-manager runs the Kubernetes controllers of a driver beside it: today the manager of PersistentVolumeSets.
//
// It is a program of its own so that the driver, which is root on every node, has neither a token nor a client of
// Kubernetes. The two meet at the CSI socket.
package main
