// Command stowage is the driver: flags to configuration, wiring, serving.
//
// It is the only place that reads the process's environment; everything below is handed what it needs.
package main
