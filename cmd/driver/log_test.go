package main

import (
	"bytes"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode"

	"k8s.io/klog/v2"
)

// later has a value that is computed only when it is logged.
type later struct{ value any }

func (l later) LogValue() slog.Value { return slog.AnyValue(l.value) }

// unspoken fails to render itself.
type unspoken struct{}

func (*unspoken) String() string { panic("\x1b[31mno") }

// TestLogHasOneLineEach: names and errors of others get into the log, and the log gets to a terminal.
func TestLogHasOneLineEach(t *testing.T) {
	var text bytes.Buffer
	log := newLog(&text, "text", 0)
	foreign := errors.Join(errors.New("a file named \x1b[31m"), errors.New("x\u009b2J\u202e\r"))
	const quoted = `"a file named \x1b[31m\nx\u009b2J\u202e\r"`
	for what, row := range map[string]struct {
		write func()
		want  string
	}{
		"an error":      {func() { log.Warn("failed", "error", foreign) }, `"failed" error=` + quoted},
		"a text":        {func() { log.Info("seen", "name", foreign.Error()) }, ` name=` + quoted},
		"of a logger":   {func() { log.With("error", foreign).Info("seen", "n", 1) }, ` error=` + quoted + " n=1"},
		"in a group":    {func() { log.Info("seen", slog.Group("g", "error", foreign)) }, ` g={"error":` + quoted + `}`},
		"below a group": {func() { log.WithGroup("g").Info("seen", "error", foreign) }, ` g.error=` + quoted},
		"a late error":  {func() { log.Info("seen", "error", later{foreign}) }, ` error=` + quoted},
		"a late group": {func() { log.Info("seen", "g", later{slog.GroupValue(slog.Any("error", foreign))}) },
			` g={"error":` + quoted + `}`},
		"a list":          {func() { log.Info("seen", "names", []string{"x\u009b2J\n"}) }, ` names=["x\u009b2J\n"]`},
		"a map":           {func() { log.Info("seen", "m", map[string]any{"\x1b": 1}) }, ` m={"\u001b":1}`},
		"bytes":           {func() { log.Info("seen", "b", []byte("\x1b\n")) }, ` b="Gwo="`},
		"a panic":         {func() { log.Info("seen", "b", (*unspoken)(nil)) }, ` b="<panic: \x1b[31mno>"`},
		"nothing":         {func() { log.Info("seen", "error", nil) }, ` error=null`},
		"a message":       {func() { log.Info(foreign.Error()) }, quoted},
		"a key":           {func() { log.Info("seen", "k\x1b", 1) }, ` k\x1b=1`},
		"klog":            {func() { klog.InfoS("seen", "error", foreign) }, ` error=` + quoted},
		"klog's failure":  {func() { klog.ErrorS(foreign, "failed") }, ` err=` + quoted},
		"klog's format":   {func() { klog.Infof("seen %s", foreign) }, `"seen a file named \x1b[31m\n`},
		"klog's object":   {func() { klog.InfoS("seen", "pod", klog.KRef("a", "b")) }, ` pod={"name":"b","namespace":"a"}`},
		"usual values":    {func() { log.Info("seen", "n", 1, "took", time.Second, "ok", true) }, ` n=1 took="1s" ok=true`},
		"a usual text":    {func() { log.Info("seen", "volume", `it's "v"`) }, ` volume="it's \"v\""`},
		"what is written": {func() { log.Info("seen", "at", netip.MustParseAddr("::1")) }, ` at="::1"`},
	} {
		text.Reset()
		row.write()
		line, ended := strings.CutSuffix(text.String(), "\n")
		if !ended || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) ||
			!strings.Contains(line, row.want) {
			t.Errorf("%s: the log has %q, want one line with %s", what, text.String(), row.want)
		}
		if !strings.Contains(line, "log_test.go:") {
			t.Errorf("%s: %s does not say where it was written", what, line)
		}
	}
}
