package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// The widths of the table's columns.
const (
	titleWidth   = 38
	checkedWidth = 76
)

// table prints a row for each step when it ends, and its progress while it runs.
type table struct {
	out      io.Writer
	terminal bool
	begun    time.Time
	rows     int
}

// step is a running step. It collects the results of its checks.
type step struct {
	mu      sync.Mutex
	now     string
	checked []string
}

func newTable(out io.Writer) *table {
	t := &table{out: out, begun: time.Now()}
	if file, ok := out.(*os.File); ok {
		_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
		t.terminal = err == nil
	}
	fmt.Fprintf(out, "%3s   %-*s %7s  %s\n", "", titleWidth, "step", "ms", "what was checked")
	return t
}

// ok records a successful check.
func (s *step) ok(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked = append(s.checked, fmt.Sprintf(format, args...))
}

// progress sets the text that shows the step's progress.
func (s *step) progress(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = fmt.Sprintf(format, args...)
}

func (s *step) at() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// run runs a step and prints its row.
func (t *table) run(ctx context.Context, title string, do func(context.Context, *step) error) error {
	t.rows++
	var s step
	start := time.Now()
	stop := t.watch(title, &s, start)
	err := ctx.Err()
	if err == nil {
		err = do(ctx, &s)
	}
	stop()
	t.row(title, &s, time.Since(start), err)
	if err != nil {
		return fmt.Errorf("step %d, %s: %w", t.rows, strings.ToLower(title), err)
	}
	return nil
}

// watch shows a step's progress until the returned function is called: in place on a terminal, otherwise in a separate
// line every two seconds.
func (t *table) watch(title string, s *step, start time.Time) (stop func()) {
	every := 2 * time.Second
	if t.terminal {
		every = 100 * time.Millisecond
		fmt.Fprintf(t.out, "%3d … %s", t.rows, title)
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
				t.show(title, s.at(), time.Since(start))
			}
		}
	}()
	return func() { close(quit); <-done }
}

func (t *table) show(title, now string, took time.Duration) {
	line := fmt.Sprintf("%3d … %s %7.1f s  %s", t.rows, pad(title, titleWidth-2), took.Seconds(), now)
	if t.terminal {
		fmt.Fprintf(t.out, "\r\033[K%s", line)
	} else {
		fmt.Fprintln(t.out, line)
	}
}

func (t *table) row(title string, s *step, took time.Duration, err error) {
	mark, checked := "✓", strings.Join(s.checked, "; ")
	if err != nil {
		mark = "✗"
		checked = strings.Join(append(s.checked, err.Error()), "; ")
	}
	if t.terminal {
		fmt.Fprint(t.out, "\r\033[K")
	}
	for i, line := range wrap(checked, checkedWidth) {
		if i == 0 {
			fmt.Fprintf(t.out, "%3d %s %s %7d  %s\n", t.rows, mark, pad(title, titleWidth), took.Milliseconds(), line)
		} else {
			fmt.Fprintf(t.out, "%*s%s\n", titleWidth+15, "", line)
		}
	}
}

// total prints the end of the table.
func (t *table) total(err error) {
	verdict := "every check held"
	if err != nil {
		verdict = "FAILED"
	}
	fmt.Fprintf(t.out, "%3s   %s %7d  %s\n", "", pad("total", titleWidth), time.Since(t.begun).Milliseconds(), verdict)
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

// wrap breaks a text into lines between words. It returns at least one line.
func wrap(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
