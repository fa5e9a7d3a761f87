package main

import "testing"

// TestRecyclerAsksLocalVolumes checks that the recycler knows whose nodes report. Without the name it would ask no node
// before a scrub.
func TestRecyclerAsksLocalVolumes(t *testing.T) {
	o := &recyclerOptions{process: process{namespace: "n"}}
	if have := o.options(); have.LocalDriver != "local.csi.stowage.dev" || have.Namespace != "n" || have.Metrics == nil {
		t.Errorf("the options are %+v", have)
	}
}
