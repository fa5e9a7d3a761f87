package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// quiet is how long nothing may be heard before what is running is printed.
const quiet = 30 * time.Second

func main() {
	skips := flag.String("skips", "", "file that lists the tests that may be skipped, each with a reason")
	verbose := flag.Bool("v", false, "print what the tests print, also of those that pass")
	flag.Parse()
	if err := run(*skips, *verbose, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "testsum: %v\n", err)
		os.Exit(1)
	}
}

func run(skips string, verbose bool, in io.Reader, out io.Writer) error {
	allowed, err := readAllowed(skips)
	if err != nil {
		return err
	}
	s := newSummary(out, allowed)
	s.verbose = verbose
	if err := consume(in, s); err != nil {
		return err
	}
	return s.finish()
}

// consume feeds the events to the summary, and tells what is running when none come for a while.
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

// decode sends the events. A line that is no event comes from a program that the test ran, or from go
// itself: it is passed on as output.
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
