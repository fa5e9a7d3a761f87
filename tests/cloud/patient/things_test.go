package patient

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// TestWhatIsDeletedMeanwhileIsMadeAgain deletes the resource of an earlier call between the answer that it exists and
// the lookup: package volume returns Busy then, and its callers retry.
func TestWhatIsDeletedMeanwhileIsMadeAgain(t *testing.T) {
	synctest.Test(t, whatIsDeletedMeanwhileIsMadeAgain)
}

func whatIsDeletedMeanwhileIsMadeAgain(t *testing.T) {
	find := func(context.Context) (int, error) { return 0, backends.Errorf(backends.NotFound, "there is none") }
	calls := []error{
		backends.Errorf(backends.Busy, "it is being made"), backends.Errorf(backends.Exists, "it is there"), nil,
	}
	call := func(context.Context) (int, error) {
		err := calls[0]
		calls = calls[1:]
		return 1, err
	}
	m := Manner{Limit: time.Minute, Patience: time.Hour}
	if made, err := create(t.Context(), m, &names{}, "one", find, call); err != nil || made != 1 {
		t.Errorf("made %d with %v, want what the third call has made", made, err)
	}
}
