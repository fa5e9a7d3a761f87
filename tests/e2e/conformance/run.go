package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// runAll runs each definition the requested number of times, and reports the results.
func (s *suite) runAll(ctx context.Context, chosen []definition, list *exceptions) error {
	reports := filepath.Join(s.data, "reports", time.Now().UTC().Format("20060102-150405"))
	var verdicts []verdict
	for run := 1; run <= s.runs; run++ {
		for _, d := range chosen {
			v, err := s.runOnce(ctx, d, run, filepath.Join(reports, d.name, strconv.Itoa(run)), list)
			if err != nil {
				return fmt.Errorf("%s, run %d: %w", d.name, run, err)
			}
			verdicts = append(verdicts, v)
		}
	}
	problems := flaky(verdicts)
	if s.suite == "full" && s.focus == "" {
		problems = append(problems, list.idle(chosen)...)
	}
	fmt.Fprintf(s.out, "\nReports are in %s.\n\n", reports)
	for _, e := range list.Excluded {
		fmt.Fprintf(s.out, "not run: %s\n    %s\n", e.Spec, e.Reason)
	}
	for _, v := range verdicts {
		fmt.Fprintln(s.out, v.line())
		problems = append(problems, v.problems...)
	}
	if len(problems) > 0 {
		return fmt.Errorf("%d problems; the first: %s", len(problems), problems[0])
	}
	return nil
}

// runOnce runs a definition once, and also writes the verdict beside the logs.
func (s *suite) runOnce(ctx context.Context, d definition, run int, into string, list *exceptions) (verdict, error) {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return verdict{}, err
	}
	r, err := s.run(ctx, d, into, list.Excluded)
	if err != nil {
		return verdict{}, err
	}
	v := judge(d, run, r, list)
	if err := v.write(s.out); err != nil {
		return v, err
	}
	file, err := os.Create(filepath.Join(into, "summary.txt"))
	if err != nil {
		return v, err
	}
	if err := v.write(file); err != nil {
		_ = file.Close()
		return v, err
	}
	return v, file.Close()
}
