// Command kubectl-stowage is a kubectl plugin for operators: kubectl stowage doctor explains why a claim, a pod or a
// node is stuck. It reads the cluster with the rights of its user and changes nothing.
package main
