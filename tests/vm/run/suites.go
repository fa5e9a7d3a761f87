package main

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// suite is a package whose tests run in the guest.
type suite struct {
	pkg   string
	match string // selects tests, as go test's -run; empty for all
	// memory puts temporary files into memory, for tests with many small files. By default they are on the disk, so that
	// loop devices are backed by an ext4, as usual.
	memory bool
	args   []string // flags of the package
	// timeout is the time limit of its tests, if longer than the default.
	timeout time.Duration
	// long suites run when they are named, and with -long.
	long bool
}

// temp is the folder for the suite's temporary files.
func (s suite) temp() string {
	if s.memory {
		return "/dev/shm"
	}
	return "/tmp"
}

// suites returns the listed suites. Without -long and named packages, only the usual ones run. With an emulated
// processor, starting a program takes a quarter of a second. Of packages that start many programs, the list therefore
// has only the tests that depend most on the kernel.
func suites() []suite {
	return []suite{
		{pkg: "./tests/vm/suites/quota"},
		{pkg: "./tests/vm/suites/growth"},
		{pkg: "./tests/vm/suites/hotplug"},
		{pkg: "./tests/vm/suites/ebs"},
		{pkg: "./tests/vm/suites/nfs"},
		{pkg: "./tests/sanity", args: []string{"-only=nfs", "-nfsd"}},
		{pkg: "./tests/nfs", match: "^(TestConformance|TestMountOptions)$", args: []string{"-nfsd", "-nfsvers=3,4.1,4.2"},
			timeout: 90 * time.Minute, long: true},
		{pkg: "./tests/vm/suites/nfsdriver", timeout: 30 * time.Minute},
		{
			pkg: "./pkg/backends/nfs", args: []string{"-nfsd"},
			match: "^(TestHostile.*|TestForgedHandle|TestAttributesOfOwnVolumesDoNotCount|" +
				"TestStaticVolumes|TestStaticVolumesOverPlantedLinks|TestMountedIsProven|TestOtherDirectoryIsNotProven|" +
				"TestRootOfHandleIsProven|TestRecordsAreNotMounted|" +
				"TestNothingIsAdopted|TestPlantedSymlinks|TestReadersTakeNoNameAway)$",
		},
		{pkg: "./tests/adversary", match: "^TestAdversary$", args: []string{"-guest", "-schedules=4"},
			timeout: 30 * time.Minute},
		{pkg: "./pkg/loops"},
		{pkg: "./pkg/safepath"},
		{pkg: "./pkg/node", match: "^TestGrowsOnStage$"},
		{pkg: "./pkg/node", match: "^TestChurn$", args: []string{"-churn=20s"}},
		{pkg: "./pkg/node/device"},
		{pkg: "./pkg/node/filesystem",
			match: "^(TestGrow.*|TestCheck.*|TestStaleIntentToGrow|TestRecoverOfATornSuperblock)$"},
		{pkg: "./pkg/node/holders"},
		{pkg: "./pkg/node/mount"},
		{pkg: "./pkg/node/ownership", memory: true},
		{pkg: "./pkg/node/stats"},
	}
}

// usual returns the suites that do not take long.
func usual() []suite {
	return slices.DeleteFunc(suites(), func(s suite) bool { return s.long })
}

// named returns the suites of a named package: the listed ones, or else one suite with all of its tests. With a test's
// pattern, it is the suite that is listed with that test, whose flags the test may need.
func named(pkg, match string) []suite {
	all := slices.DeleteFunc(suites(), func(s suite) bool { return s.pkg != pkg })
	if len(all) == 0 {
		return []suite{{pkg: pkg}}
	}
	if match == "" {
		return all
	}
	top, _, _ := strings.Cut(match, "/")
	test := strings.Trim(top, "^$")
	for _, s := range all {
		if s.match != "" && regexp.MustCompile(s.match).MatchString(test) {
			return []suite{s}
		}
	}
	return all[:1]
}
