package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The time limit of each form as a whole. A run that is ended from outside would show no table.
const (
	mostOfGate = 40 * time.Minute // Without fetch. From nothing it takes 30 on two idle cores, a half of it compiling.
	// With caches it takes 60 to 80. From nothing, programs and race compile for most of an hour, and vm ends later than
	// both.
	mostOfLong = 150 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "ci: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	r := &runner{out: os.Stdout, logs: "bin/ci", begun: time.Now()}
	if len(args) > 0 && args[0] == "touched" {
		return touched(ctx, r.out, args[1:])
	}
	var steps []step
	form := ""
	if len(args) == 1 && (args[0] == "long" || args[0] == "fresh") {
		form = args[0]
	} else if len(args) > 0 {
		var err error
		if steps, err = named(args); err != nil {
			return err
		}
	}
	if err := makeLogs(r.logs, r.begun); err != nil {
		return err
	}
	switch {
	case len(args) == 0, form == "fresh":
		r.offline, r.fresh = true, form == "fresh"
		return r.all(ctx, mostOfGate, fetch("gate"), gate())
	case form == "long":
		r.seed = seed()
		fmt.Fprintf(r.out, "CI_SEED=%s draws the same schedules again\n", r.seed)
		return r.all(ctx, mostOfLong, fetch("long"), long())
	}
	r.seed = os.Getenv("CI_SEED")
	r.one(ctx, steps)
	return r.finish()
}

// seed returns the given seed, or a new one.
func seed() string {
	if given := os.Getenv("CI_SEED"); given != "" {
		return given
	}
	return fmt.Sprint(time.Now().Unix())
}

// named returns the steps of these names. A name of both forms is the gate's; long-race, for example, is the step of
// the long form.
func named(names []string) (steps []step, err error) {
	known := map[string]step{"fetch": fetch("gate")}
	for _, s := range long() {
		known[s.name], known["long-"+s.name] = s, s
	}
	for _, s := range gate() {
		known[s.name] = s
	}
	for _, name := range names {
		s, ok := known[name]
		if !ok {
			var all []string
			for name := range known {
				all = append(all, name)
			}
			slices.Sort(all)
			return nil, fmt.Errorf("there is no step %s: use %s", name, strings.Join(all, ", "))
		}
		steps = append(steps, s)
	}
	return steps, nil
}
