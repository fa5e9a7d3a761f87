package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/stowage-csi/stowage/hack/outcome"
)

// quiet is the time without events after which the running tests are printed.
const quiet = 30 * time.Second

// options are the flags.
type options struct {
	skips, quarantine, report, dir, again string
	verbose                               bool
}

func main() {
	var o options
	flag.StringVar(&o.skips, "skips", "", "file that lists the tests that may be skipped, each with a reason")
	flag.StringVar(&o.quarantine, "quarantine", "", "file that lists the tests that are left out, each with a reason")
	flag.StringVar(&o.report, "report", "", "file to which the outcome is added")
	flag.StringVar(&o.dir, "dir", "", "directory in which the command runs")
	flag.StringVar(&o.again, "again", "",
		"command that printed the events of the standard input, which takes -run and packages")
	flag.BoolVar(&o.verbose, "v", false, "print what the tests print, also of those that pass")
	flag.Parse()
	// The signal that ends this run ends the tests as well. Their output until then is still reported.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, o, flag.Args(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "testsum: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, args []string, in io.Reader, out io.Writer) error {
	allowed, err := outcome.ReadAllowances(o.skips)
	if err != nil {
		return err
	}
	s := newSummary(out, allowed)
	s.verbose, s.sources.dir = o.verbose, o.dir
	if len(args) == 0 {
		s.repeat = o.repeat
		if err := consume(in, s); err != nil {
			return err
		}
		return finish(o, s)
	}
	c, err := parseCommand(o, args)
	if err != nil {
		return err
	}
	c.env = environment(args)
	s.repeat = c.repeat
	if err := c.run(context.WithoutCancel(ctx), s); err != nil {
		return err
	}
	s.cut = ctx.Err() != nil
	s.again(c)
	return finish(o, s)
}

// finish prints the totals and adds the results to the report.
func finish(o options, s *summary) error {
	verdict := s.finish()
	if o.report == "" {
		return verdict
	}
	r, _ := outcome.Read(o.report) // An earlier run of the same step may have started it.
	r.Passed, r.Failed, r.Skipped = r.Passed+s.total.passed, r.Failed+s.total.failed, r.Skipped+s.total.skipped
	r.Failures = append(r.Failures, s.failures()...)
	if err := r.Write(o.report); err != nil {
		return fmt.Errorf("cannot write the report: %w", err)
	}
	return verdict
}

// consume passes the events to the summary, and prints the running tests when no events come for a while.
func consume(in io.Reader, s *summary) error {
	events, failed := make(chan event), make(chan error, 1)
	go func() {
		defer close(events)
		failed <- decode(in, events)
	}()
	ticker := time.NewTicker(quiet)
	defer ticker.Stop()
	for {
		select {
		case e, more := <-events:
			if !more {
				return <-failed
			}
			s.add(e)
			ticker.Reset(quiet)
		case <-ticker.C:
			s.progress()
		}
	}
}

// decode sends the events. A line that is no event comes from a program that the test ran, or from go itself, and is
// treated as output.
func decode(in io.Reader, events chan<- event) error {
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				e = event{Action: "stray", Output: string(line)}
			}
			events <- e
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read the events: %w", err)
		}
	}
}
