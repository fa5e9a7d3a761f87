package node

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/node/ownership"
)

// sums adds up the calls of an observer.
type sums struct {
	began, ended, failed      int
	entries, changed, refused int64
}

func (s *sums) WalkBegan() { s.began++ }

func (s *sums) WalkProgressed(entries, changed, denied int64) {
	s.entries, s.changed, s.refused = s.entries+entries, s.changed+changed, s.refused+denied
}

func (s *sums) WalkEnded(_ time.Duration, err error) {
	s.ended++
	if err != nil {
		s.failed++
	}
}

func TestWalkReport(t *testing.T) {
	var out bytes.Buffer
	got := &sums{}
	report := &walkReport{log: slog.New(slog.NewTextHandler(&out, nil)).With("volume", "v"), observer: got}
	report.Began()
	for second := int64(1); second <= 25; second++ {
		report.Progressed(ownership.Result{Entries: 100 * second, Changed: 90 * second, Denied: second},
			time.Duration(second)*time.Second)
	}
	report.Ended(25*time.Second, errors.New("cut short"))
	if want := (sums{began: 1, ended: 1, failed: 1, entries: 2500, changed: 2250, refused: 25}); *got != want {
		t.Errorf("the observer was told %+v, want %+v", *got, want)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines in the log of 25 s, want 2:\n%s", len(lines), out.String())
	}
	for _, want := range []string{"volume=v", "entries=2000", "changed=1800", "denied=20", "rate=100", "elapsed=20s"} {
		if !strings.Contains(lines[1], want) {
			t.Errorf("the line lacks %s: %s", want, lines[1])
		}
	}
}
