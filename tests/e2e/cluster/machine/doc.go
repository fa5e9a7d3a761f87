// Package machine implements process 1 of namespaces that simulate a machine: the machine of the control plane, and one
// for each node inside it. It starts the machine's components, restarts and logs those that end, and reaps orphaned
// processes. When it ends for any reason, the kernel ends every process in its namespaces.
package machine
