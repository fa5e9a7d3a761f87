package main

import (
	"slices"
	"strings"
)

// steering returns the names of the environment variables that change what a step's command does: the Makefile's own,
// and those of make, go and bash. A step runs without them, so that it checks the same on every machine, and no
// forgotten export of a shell lowers a floor or leaves out tests.
func steering() []string {
	return []string{
		"ADVERSARYFLAGS", "BENCHFLAGS", "CHAOSFLAGS", "CONFORMANCEFLAGS", "E2EFLAGS", "FAILOVERFLAGS", "FLOOR", "FUZZTIME",
		"GO", "IMAGE", "KILLS", "MOTOFLAGS", "N", "NODES", "OWNERSHIPFLAGS", "PKG", "POWERFLAGS", "QUARANTINE",
		"REPORT", "RUN", "SEED", "SINCE", "STORMFLAGS", "TESTFLAGS", "TIMEOUT", "VERSION", "VMFLAGS",
		"GNUMAKEFLAGS", "MAKEFILES", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS",
		"CGO_ENABLED", "GOARCH", "GODEBUG", "GOEXPERIMENT", "GOFLAGS", "GOGC", "GOMAXPROCS",
		"GOMEMLIMIT", "GOOS", "GORACE", "GOTOOLDIR", "GOWORK",
		"BASHOPTS", "BASH_ENV", "CDPATH", "ENV", "POSIXLY_CORRECT", "SHELLOPTS",
		"CSI_ENDPOINT", "KUBERNETES_SERVICE_HOST", "IMAGE_ARCHIVE", // They are the driver's own, and hack/image's.
	}
}

// unsteered returns an environment without the steering variables, and the names of those that it had.
func unsteered(environ []string) (rest, dropped []string) {
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		// bash exports its functions so, and one may have the name of a command.
		if slices.Contains(steering(), name) || strings.HasPrefix(name, "BASH_FUNC_") {
			dropped = append(dropped, name)
		} else {
			rest = append(rest, entry)
		}
	}
	slices.Sort(dropped)
	return rest, dropped
}
