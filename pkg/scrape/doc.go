// Package scrape serves metrics and probes over HTTP within bounds: who may reach the port, such as every pod of a
// cluster, must not take descriptors or memory from what the process is for.
package scrape
