package background_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/background"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// Join finds any work under way, begins none, and takes value and error of the outcome.
func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works := background.New[int](1)
		if value, err := works.Join(t.Context(), "v"); value != 0 || err != nil {
			t.Errorf("with none it yields %d, %v", value, err)
		}
		_, err := works.Do(call(t, time.Second), background.Work{Key: "v", Name: "counting"}, slow(7, errOwn))
		wantKind(t, err, failure.Busy)
		_, err = works.Join(call(t, time.Second), "v")
		wantKind(t, err, failure.Busy, "counting")
		if value, err := works.Join(t.Context(), "v"); value != 7 || !errors.Is(err, errOwn) {
			t.Errorf("got %d, %v; want 7 and the work's own error", value, err)
		}
		if value, err := works.Join(t.Context(), "v"); value != 0 || err != nil {
			t.Errorf("the outcome was heard twice: %d, %v", value, err)
		}
	})
}
