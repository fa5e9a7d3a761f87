package main

import "time"

// step is one command of make, or one of this repository's own.
type step struct {
	name    string
	command string
	limit   time.Duration // about three times its duration on two cores, with caches except for the gate's own builds
	tests   int           // how many tests usually pass; far fewer fail the step, and far more are reported
	says    string        // a pattern for the log that adds to them: the sum of its numbers, or the number of matches
	waits   bool          // it waits more than it computes, so it runs beside one that computes
	alone   bool          // it disturbs other users of the kernel or of the cores, so it runs first, and none beside it
	long    bool          // it belongs to the long form
	asks    bool          // it asks an external service, and exits with unavailable if that does not answer
	// A change should run this step of the long form if it touches anything that these packages and their tests link, or
	// files below these folders.
	packages, folders string
}

// fetch returns the first step of both forms: everything that needs the network.
func fetch(form string) step {
	return step{name: "fetch", command: "hack/fetch " + form, limit: 10 * time.Minute}
}

// gate returns the steps of the gate, one after the other: nothing competes with them.
func gate() []step {
	return []step{
		{name: "verify", command: "make verify", limit: 20 * time.Minute},
		{name: "build", command: "make build manager", limit: 8 * time.Minute},
		{name: "test", command: "make test", limit: 25 * time.Minute, tests: 7403},
		{name: "cover", command: "make floor", limit: time.Minute},
		{name: "race", command: "make race-core", limit: 24 * time.Minute, tests: 2034}, // It compiles everything anew.
		{name: "deploy", command: "make deploy-test", limit: 10 * time.Minute, tests: 558},
		{name: "demo", command: "make demo", limit: 3 * time.Minute},
		{name: "crash", command: "make crash KILLS=5", limit: 10 * time.Minute, tests: 11},
		{name: "chaos", command: "make chaos", limit: 6 * time.Minute, tests: 50},
		{name: "adversary", command: "make adversary", limit: 13 * time.Minute, tests: 100},
	}
}

// long returns the steps of the long form.
func long() []step {
	steps := []step{
		{
			// The images too: on a bare machine they take a third of the time that the end-to-end tests have. Building
			// Kubernetes takes every core: beside race, both took twice as long and exceeded their limits.
			name: "programs", command: "go run ./tests/e2e/cluster build -programs && go run ./tests/e2e/cluster build",
			limit: 50 * time.Minute, alone: true, packages: "tests/e2e/cluster",
		},
		{
			name: "vm", command: "make vm-test", limit: 70 * time.Minute, tests: 512, waits: true,
			packages: "tests/vm/... tests/adversary tests/nfs tests/sanity pkg/backends/nfs pkg/loops pkg/node/... pkg/safepath",
		},
		{name: "e2e", command: "make e2e", limit: 40 * time.Minute, tests: 121, waits: true,
			packages: "cmd/... tests/e2e/...", folders: "deploy"},
		{
			name:    "conformance",
			command: "make e2e-conformance CONFORMANCEFLAGS='-suite core -definitions image-xfs -procs 8 -timeout 10m'",
			limit:   15 * time.Minute, tests: 30, says: `(?s)Reports are in .*image-xfs, run 1: (\d+) passed`, waits: true,
			packages: "cmd/driver tests/e2e/conformance/...", folders: "deploy",
		},
		{name: "failover", command: "make failover-test", limit: 35 * time.Minute, tests: 1, waits: true,
			packages: "pkg/controllers/failover tests/e2e/failover"},
		{name: "race", command: "make race", limit: 75 * time.Minute, tests: 7403, folders: "cmd pkg"},
		{name: "fuzz", command: "make fuzz FUZZTIME=50000x", limit: 25 * time.Minute, tests: 18, says: `fuzz: (\d+) targets`,
			folders: "hack/fuzz pkg/base64url pkg/driver pkg/params pkg/safepath pkg/backends pkg/node pkg/volume"},
		{name: "storms", command: "make storms", limit: 20 * time.Minute, tests: 2250,
			packages: "tests/ebs"},
		{
			name: "adversary", command: "make adversary ADVERSARYFLAGS='-budget 10m'", limit: 25 * time.Minute, tests: 72,
			packages: "tests/adversary",
		},
		{
			name: "silence", command: "make adversary ADVERSARYFLAGS='-run TestAdversary -profile silent -budget 5m'",
			limit: 18 * time.Minute, tests: 3, alone: true, packages: "tests/adversary",
		},
		{name: "plants", command: "make plants PLANTS=./pkg/controllers/volumeset", limit: 15 * time.Minute, tests: 14,
			packages: "pkg/controllers/volumeset"},
		{name: "powerloss", command: "make powerloss", limit: 5 * time.Minute, tests: 21,
			packages: "tests/powerloss"},
		{name: "vulns", command: "hack/vulns", limit: 10 * time.Minute, asks: true, folders: "hack/vulns"},
		{name: "image", command: "make image", limit: 10 * time.Minute, folders: "Dockerfile hack/image hack/base-image cmd"},
		{name: "moto", command: "make moto", limit: 30 * time.Minute, tests: 130,
			says: `(\d+) scenarios pass`, packages: "tests/cloud/moto/..."},
		{name: "bench", command: "make bench BENCHFLAGS='-volumes 40'", limit: 5 * time.Minute, tests: 6,
			says: `(?m)^pool \w+, \d+ in flight: `, packages: "cmd/driver tests/bench/..."},
	}
	for i := range steps {
		steps[i].long = true
	}
	return steps
}

// patience returns how long the tests of a package may take within the step. go test then prints what hangs, which the
// end of the step does not. What the step builds first has the rest of its limit.
func (s step) patience() time.Duration { return s.limit * 3 / 4 }

// again returns the command that runs the step.
func (s step) again() string {
	if s.long {
		return ".ci/run long-" + s.name
	}
	return ".ci/run " + s.name
}
