// Package scrape serves metrics and probes over HTTP within limits: clients that can reach the port, such as every pod
// of a cluster, must not take descriptors or memory from the process's own task.
package scrape
