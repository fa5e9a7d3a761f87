package outcome

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// read returns the text of a script of hack/.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fail runs a script with stand-ins for other programs, by their names, and returns its output. The script must fail.
func fail(t *testing.T, programs map[string]string, name string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	for program, text := range programs {
		path := filepath.Join(dir, program)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, name), args...)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "DEBOOTSTRAP_DIR="+dir)
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("%s succeeds, and says %s", name, out)
	}
	return string(out)
}

// A package that the archive does not know is a mistake in the tree, unless the archive's lists could not be updated.
func TestMisspelledPackage(t *testing.T) {
	const unknown, candidate = "echo 'E: Unable to locate package grepp' >&2; exit 100",
		`echo "E: Package 'grepp' has no installation candidate" >&2; exit 100`
	for name, test := range map[string]struct {
		update, install string
		want            Class
	}{
		"unknown":                        {"exit 0", unknown, Defect},
		"without a candidate":            {"exit 0", candidate, Defect},
		"unknown to lists that are old":  {"echo 'E: Failed to fetch' >&2; exit 100", unknown, Infra},
		"known, but cannot be fetched":   {"exit 0", "echo 'E: Failed to fetch' >&2; exit 100", Infra},
		"neither lists, nor the package": {"exit 100", "echo 'E: Failed to fetch' >&2; exit 100", Infra},
	} {
		t.Run(name, func(t *testing.T) {
			said := fail(t, map[string]string{
				"deps":    strings.Replace(read(t, "deps"), "[make]=", "[wrong]=\"grepp:no-such-command\"\n  [make]=", 1),
				"id":      "#!/bin/sh\necho 0\n",
				"apt-get": "#!/bin/sh\ncase $1 in update) " + test.update + ";; *) " + test.install + ";; esac\n",
			}, "deps", "wrong")
			if class := StepClass(said); class != test.want || !strings.Contains(said, "E: ") {
				t.Errorf("it is %s, want %s with what apt-get says:\n%s", class, test.want, said)
			}
		})
	}
}

// Neither a registry that does not answer nor a silent database of vulnerabilities is a defect of the change.
func TestVulnsWithoutNetwork(t *testing.T) {
	const installs = `#!/bin/sh
printf '#!/bin/sh\necho "govulncheck: fetching vulnerabilities: dial tcp" >&2; exit 1\n' >"$GOBIN/govulncheck"
chmod +x "$GOBIN/govulncheck"
`
	for program, want := range map[string]string{
		"#!/bin/sh\necho 'dial tcp: no route to host' >&2; exit 1\n": "INFRA: golang.org/x/vuln",
		installs: "the database of vulnerabilities does not answer",
	} {
		said := fail(t, map[string]string{"vulns": read(t, "vulns"), "go": program}, "vulns")
		if !strings.HasPrefix(lastSaid(said), want) || !strings.Contains(said, "dial tcp") {
			t.Errorf("got %q, want %q and the reason", said, want)
		}
	}
}

// A release that debootstrap does not know is a mistake in the tree too, and so is a package that it does not find.
func TestMisspelledRelease(t *testing.T) {
	for name, test := range map[string]struct {
		release, says string
		want          Class
	}{
		"unknown release": {"bookwurm", "I: nothing", Defect},
		"unknown package": {"bookworm", "E: Couldn't find these debs: ca-certificate", Defect},
		"dead mirror":     {"bookworm", "E: Failed getting release file", Infra},
	} {
		t.Run(name, func(t *testing.T) {
			said := fail(t, map[string]string{
				"base-image": read(t, "base-image"), "scripts/bookworm": "", "apt-get": "#!/bin/sh\n", "buildah": "#!/bin/sh\n",
				"debootstrap": "#!/bin/sh\necho \"" + test.says + "\"\nexit 1\n", "try": "#!/bin/sh\nexec \"$@\"\n",
			}, "base-image", "debian:"+test.release+"-slim", "buildah")
			if class := StepClass(said); class != test.want {
				t.Errorf("it is %s, want %s:\n%s", class, test.want, said)
			}
		})
	}
}
