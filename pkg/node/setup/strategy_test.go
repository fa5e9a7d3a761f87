package setup_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/setup"
)

func TestNoneAlwaysRuns(t *testing.T) {
	for range 2 {
		if run, err := (setup.None{}).ShouldRun(t.Context()); !run || err != nil {
			t.Fatalf("ShouldRun() = %v, %v", run, err)
		}
		if err := (setup.None{}).Mark(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMountpointFollowsTheMount(t *testing.T) {
	for _, test := range []struct {
		mounted bool
		err     error
		run     bool
	}{{false, nil, true}, {true, nil, false}, {false, errTest, false}, {true, errTest, false}} {
		strategy := setup.Mountpoint{Mounted: func(context.Context) (bool, error) { return test.mounted, test.err }}
		run, err := strategy.ShouldRun(t.Context())
		if run != test.run || !errors.Is(err, test.err) {
			t.Errorf("mounted %v, %v: ShouldRun() = %v, %v", test.mounted, test.err, run, err)
		}
		if err := strategy.Mark(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestMarkerFileIsMadeAfterSuccessOnly(t *testing.T) {
	marker := setup.MarkerFile{Path: filepath.Join(t.TempDir(), "ready")}
	runs := 0
	attempt := func(fail error) (bool, error) {
		return setup.Run(t.Context(), marker, func(context.Context) (bool, error) {
			runs++
			return true, fail
		})
	}
	if _, err := attempt(errTest); !errors.Is(err, errTest) {
		t.Fatalf("a failing setup gave %v", err)
	}
	if _, err := os.Lstat(marker.Path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("after a failure the marker is there: %v", err)
	}
	for i, want := range []bool{true, false, false} {
		if didWork, err := attempt(nil); didWork != want || err != nil {
			t.Fatalf("attempt %d: Run() = %v, %v", i, didWork, err)
		}
	}
	if runs != 2 {
		t.Errorf("the setup ran %d times, want 2", runs)
	}
}

func TestMarkerFileRefusesWhatIsNotAFile(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	link := filepath.Join(t.TempDir(), "ready")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, t.TempDir()} {
		if run, err := (setup.MarkerFile{Path: path}).ShouldRun(t.Context()); run || !backends.Is(err, backends.Invalid) {
			t.Errorf("%s: ShouldRun() = %v, %v; want Invalid", path, run, err)
		}
	}
	if err := (setup.MarkerFile{Path: link}).Mark(t.Context()); !backends.Is(err, backends.Unavailable) {
		t.Errorf("Mark over a symbolic link gave %v, want Unavailable", err)
	}
	if _, err := os.Lstat(elsewhere); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Mark followed a symbolic link: %v", err)
	}
	below := setup.MarkerFile{Path: filepath.Join(t.TempDir(), "absent", "ready")}
	if err := below.Mark(t.Context()); !backends.Is(err, backends.Unavailable) {
		t.Errorf("Mark in an absent directory gave %v, want Unavailable", err)
	}
}
