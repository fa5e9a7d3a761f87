package main

import "time"

// step is one command of make, or of the house's own.
type step struct {
	name    string
	command string
	limit   time.Duration // about three times what it takes on two cores, with caches but for what the gate builds itself
	tests   int           // how many tests pass usually; a run of far fewer fails
	says    string        // instead, a pattern for the log: the sum of its numbers, or else how often it is there
	waits   bool          // it waits more than it computes, so that it runs beside one that computes
	long    bool          // it belongs to the long form
	asks    bool          // it asks a service of others, and exits with unavailable where that does not answer
	folders string        // below which a change should see this step of the long form
}

// fetch is the first step of both forms: all that needs the network.
func fetch(form string) step {
	return step{name: "fetch", command: "hack/fetch " + form, limit: 10 * time.Minute}
}

// gate returns the steps of the gate, one after the other: nothing competes with them.
func gate() []step {
	return []step{
		{name: "verify", command: "make verify", limit: 15 * time.Minute},
		{name: "build", command: "make build manager", limit: 8 * time.Minute},
		{name: "test", command: "make test QUARANTINE=hack/quarantine", limit: 25 * time.Minute, tests: 6060},
		{name: "cover", command: "make floor", limit: time.Minute},
		{name: "race", command: "make race-core", limit: 16 * time.Minute, tests: 1460}, // It compiles all anew.
		{name: "deploy", command: "make deploy-test", limit: 5 * time.Minute, tests: 298},
		{name: "demo", command: "make demo", limit: 3 * time.Minute},
		{name: "crash", command: "make crash KILLS=5", limit: 3 * time.Minute, tests: 11},
		{name: "chaos", command: "make chaos", limit: 4 * time.Minute, tests: 50},
		{name: "adversary", command: "make adversary", limit: 8 * time.Minute, tests: 36},
	}
}

// long returns the steps of the long form.
func long() []step {
	const (
		clusters = "cmd deploy pkg/driver pkg/node pkg/controllers pkg/apis pkg/backends pkg/classes pkg/disks pkg/doctor " +
			"pkg/machines pkg/mountoptions pkg/params pkg/volume tests/e2e"
		// What every backend stands on.
		shared = " pkg/background pkg/classes pkg/deadline pkg/dirlock pkg/durable pkg/failure pkg/filecopy pkg/keylock " +
			"pkg/loops pkg/mountoptions pkg/pagetoken pkg/rawfile pkg/safepath pkg/tree"
	)
	steps := []step{
		{name: "programs", command: "go run ./tests/e2e/cluster build -programs", limit: 50 * time.Minute, waits: true,
			folders: clusters},
		{
			name: "vm", command: "make vm-test", limit: 45 * time.Minute, tests: 476, waits: true,
			folders: "pkg/node pkg/backends tests/adversary tests/nfs tests/sanity tests/vm" + shared,
		},
		{name: "e2e", command: "make e2e", limit: 30 * time.Minute, tests: 115, waits: true, folders: clusters},
		{
			name: "conformance", command: "make e2e-conformance CONFORMANCEFLAGS='-suite core -definitions image-xfs -procs 8'",
			limit: 15 * time.Minute, tests: 30, says: `image-xfs, run 1: (\d+) passed`, waits: true, folders: clusters,
		},
		{name: "race", command: "make race", limit: 40 * time.Minute, tests: 5920, folders: "cmd pkg"},
		{name: "fuzz", command: "make fuzz FUZZTIME=50000x", limit: 15 * time.Minute, tests: 18, says: `fuzz: (\d+) targets`,
			folders: "hack/fuzz pkg/base64url pkg/driver pkg/params pkg/safepath pkg/backends pkg/node pkg/volume"},
		{name: "storms", command: "make storms", limit: 10 * time.Minute, tests: 2250,
			folders: "pkg/cloud pkg/backends/backendtest pkg/backends/ebs tests/cloud tests/ebs"},
		{
			name: "adversary", command: "make adversary ADVERSARYFLAGS='-budget 10m'", limit: 25 * time.Minute, tests: 36,
			folders: "pkg/backends pkg/cloud pkg/driver pkg/node pkg/params pkg/volume tests/adversary tests/cloud " +
				"tests/orchestrator" + shared,
		},
		{name: "plants", command: "make plants PLANTS=./pkg/controllers/volumeset", limit: 15 * time.Minute, tests: 10,
			folders: "pkg/controllers/volumeset tests/plants"},
		{name: "powerloss", command: "make powerloss", limit: 5 * time.Minute, tests: 21,
			folders: "pkg/backends/local tests/orchestrator tests/powerloss" + shared},
		{name: "vulns", command: "hack/vulns", limit: 10 * time.Minute, asks: true},
		{name: "image", command: "make image", limit: 10 * time.Minute, folders: "Dockerfile hack/image hack/base-image cmd"},
		{name: "moto", command: "make moto", limit: 15 * time.Minute, folders: "pkg/cloud pkg/backends/ebs tests/cloud"},
		{name: "bench", command: "make bench BENCHFLAGS='-volumes 40'", limit: 5 * time.Minute, tests: 6,
			says: `(?m)^pool \w+, \d+ in flight: `, folders: "pkg tests/bench"},
	}
	for i := range steps {
		steps[i].long = true
	}
	return steps
}

// again is the command that runs the step.
func (s step) again() string {
	if s.long {
		return ".ci/run long-" + s.name
	}
	return ".ci/run " + s.name
}
