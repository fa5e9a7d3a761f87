package main

import (
	"math"
	"slices"
	"time"
)

// series holds the durations of repeated measurements.
type series struct {
	name string
	took []time.Duration
}

// time runs f and records its duration, unless it failed.
func (s *series) time(f func() error) error {
	begin := time.Now()
	if err := f(); err != nil {
		return err
	}
	s.took = append(s.took, time.Since(begin))
	return nil
}

// percentile returns the nearest-rank percentile: the least duration that p percent of all do not exceed. It returns 0
// for an empty series.
func (s *series) percentile(p float64) time.Duration {
	if len(s.took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.took))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

func (s *series) median() time.Duration { return s.percentile(50) }

// mean returns the average, and 0 for an empty series.
func (s *series) mean() time.Duration {
	var sum time.Duration
	for _, took := range s.took {
		sum += took
	}
	return sum / time.Duration(max(len(s.took), 1))
}
