package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestTheSeedReachesWhatDraws checks the commands of the steps that draw random numbers.
func TestTheSeedReachesWhatDraws(t *testing.T) {
	draws := "vm e2e race storms adversary silence plants powerloss"
	for _, s := range long() {
		if !strings.Contains(draws, s.name) {
			continue
		}
		commands, err := exec.CommandContext(t.Context(), "bash", "-c", "cd ../.. && SEED=1717 "+s.command+" -n").Output()
		if err != nil || !strings.Contains(string(commands), "1717") {
			t.Errorf("%s does not get the seed: %v\n%s", s.name, err, commands)
		}
	}
}

// TestSeeded runs a stand-in for the tests of a package, without and with a flag for a seed.
func TestSeeded(t *testing.T) {
	program, err := filepath.Abs("../seeded")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, want := range []string{"-test.v", "-test.v -seed 17"} {
		said, err := exec.CommandContext(t.Context(), program, "17", "echo", "-test.v").Output()
		if got := strings.TrimSpace(string(said)); err != nil || got != want {
			t.Errorf("got %v and %q, want %q", err, got, want)
		}
		flag := "flag.Uint64(" + strconv.Quote("see"+"d") + ")" // In parts, because hack/seeded reads this file too.
		if err := os.WriteFile("a_test.go", []byte(flag), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhoGetsASeedTakesIt looks for packages that hack/seeded mistakes for packages with the flag.
func TestWhoGetsASeedTakesIt(t *testing.T) {
	const who = `cd ../.. && grep -rlF --include=*_test.go "\"see""d\"" cmd pkg tests hack | xargs dirname | sort -u`
	folders, err := exec.CommandContext(t.Context(), "bash", "-c", who).Output()
	if err != nil || strings.Count(string(folders), "\n") < 5 {
		t.Fatalf("got %v and %q", err, folders)
	}
	for _, folder := range strings.Fields(string(folders)) {
		const has = `cd "../../$0" && grep -qE '\bflag\.\w+\((seedFlag|.seed.),' ./*_test.go`
		if err := exec.CommandContext(t.Context(), "bash", "-c", has, folder).Run(); err != nil {
			t.Errorf("%s would get a seed, and its tests have no flag for one", folder)
		}
	}
}
