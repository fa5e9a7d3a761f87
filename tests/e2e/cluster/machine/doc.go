// Package machine is process 1 of namespaces that stand for a machine: the one that the control plane runs on, and
// inside it one for each node. It starts what runs there, starts again what dies, writes down that it did, and reaps
// processes whose parents are gone. When it ends, by whatever cause, the kernel ends everything in its namespaces.
package machine
