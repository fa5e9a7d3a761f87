// Command kubectl-stowage is a plugin of kubectl for operators: kubectl stowage doctor says why a claim, a pod or a
// node is stuck. It reads the cluster with the rights of its user and changes nothing.
package main
