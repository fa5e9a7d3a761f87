package moto

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/store"
)

// suite is the Debian release of the moto package.
const suite = "trixie"

// packages are the packages in addition to the minimum. The first lacks the others in its dependencies, or has them as
// virtual packages, which debootstrap does not support.
func packages() []string {
	return []string{"python3-moto", "python3-flask-cors", "python3-cffi-backend"}
}

// Root returns the path of a root filesystem with moto_server. If the store does not have it, debootstrap builds it,
// which needs root and takes some minutes. The filesystem must not be modified.
func Root(ctx context.Context, out io.Writer) (string, error) {
	recipe := []string{"debootstrap minbase", suite, runtime.GOARCH}
	key, err := store.NewKey(append(recipe, packages()...)...).String()
	if err != nil {
		return "", err
	}
	s := store.Store{Dir: store.CacheDir("moto"), Out: out, Label: "moto"}
	return s.Make(ctx, store.Item{Name: "root", Key: key, Make: makeRoot})
}

func makeRoot(ctx context.Context, path string, progress *store.Progress) error {
	if os.Geteuid() != 0 {
		return errors.New("debootstrap makes a root filesystem for root only: run this as root")
	}
	args := []string{"--variant=minbase", "--include=" + strings.Join(packages(), ","), suite, path}
	if from := source(ctx); from != "" {
		args = append(args, from)
	}
	if err := bootstrap(ctx, args, progress); err != nil {
		return store.Unfetched(fmt.Errorf("debootstrap (hack/deps image installs it): %w\n%s", err, progress.Tail()))
	}
	for _, needless := range []string{"var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man",
		"usr/share/locale", "debootstrap"} {
		if err := os.RemoveAll(filepath.Join(path, needless)); err != nil {
			return err
		}
	}
	return nil
}

// bootstrap runs debootstrap up to five times, with growing delays, because a mirror may fail. Files that a failed
// attempt has fetched are reused.
func bootstrap(ctx context.Context, args []string, progress *store.Progress) (err error) {
	for pause := 2 * time.Second; ; pause *= 3 {
		cmd := command(ctx, "debootstrap", args...)
		cmd.Stdout, cmd.Stderr = progress, progress
		// Its mounts end with it, however it ends.
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		if err = cmd.Run(); err == nil || pause > time.Minute {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// source returns the URL from which this machine gets Debian; it contains all releases. It returns an empty string, for
// debootstrap's own default, if apt-get does not report a URL.
func source(ctx context.Context) string {
	text, err := command(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)",
		"Created-By: Packages").Output()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		// Updates and security fixes of a release are at other URLs, under names with a dash.
		fields := strings.Fields(line)
		if len(fields) == 4 && fields[2] == "main" && fields[3] == "Debian" && !strings.Contains(fields[1], "-") {
			return fields[0]
		}
	}
	return ""
}

// command returns a command whose PATH includes programs for root.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	return cmd
}
