package main

import "runtime/debug"

// heapGrowth is by how many percent the heap grows before it is collected; Go's own default is 100. A driver needs a
// few megabytes and makes garbage with each request: with 100 it collects all the time, and requests take up to a fifth
// longer. This costs about ten megabytes with 32 requests at a time.
const heapGrowth = 400

// collectLess sets the heap's growth unless the operator has set it by the environment variable GOGC.
func collectLess(gogc string) {
	if gogc == "" {
		debug.SetGCPercent(heapGrowth)
	}
}
