package trim

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestHungDeviceHoldsUpNoOther checks that a device that no longer answers does not keep other volumes from being
// trimmed, and that one that answers, range by range, for an hour is trimmed alone.
func TestHungDeviceHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := schedule(t)
		var mu sync.Mutex
		var begun []string
		say := func(text string) {
			mu.Lock()
			defer mu.Unlock()
			begun = append(begun, text)
		}
		release := make(chan struct{})
		s.trim = func(_ context.Context, fs Filesystem, answered func()) (uint64, error) {
			say(fs.Path)
			switch fs.Path {
			case "hung":
				<-release
			case "slow":
				for range 120 {
					time.Sleep(patience / 2) //nolint:forbidigo // Simulated time.
					answered()
				}
				say("slow ended")
			}
			return 0, nil
		}
		now := time.Now()
		for i, name := range []string{"hung", "slow", "other"} {
			s.Set(Volume{name, Filesystem{Path: name}, day}, now)
			s.volumes[name].due = now.Add(time.Duration(i))
		}
		s.Due(t.Context(), now.Add(day))
		if want := []string{"hung", "slow", "slow ended", "other"}; !slices.Equal(begun, want) {
			t.Errorf("trimmed were %v, want %v", begun, want)
		}
		s.Due(t.Context(), now.Add(2*day))
		if again := begun[4:]; slices.Contains(again, "hung") || len(again) != 3 {
			t.Errorf("a day later, trimmed were %v", again)
		}
		close(release)
		synctest.Wait()
		if s.begin(t.Context(), now.Add(3*day)); s.running["hung"] == nil {
			t.Error("the device has answered, and its volume is not due a day later")
		}
	})
}
