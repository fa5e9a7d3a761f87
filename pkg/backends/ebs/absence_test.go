package ebs

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// TestAbsenceBeginsAnew looks again after a pause in which another controller may have served.
func TestAbsenceBeginsAnew(t *testing.T) {
	for pause, want := range map[time.Duration]bool{keepAbsent: true, keepAbsent + 1: false} {
		synctest.Test(t, func(t *testing.T) {
			r := refusals{settle: time.Minute}
			r.note("v", time.Now())
			<-time.After(pause)
			r.note("v", time.Now())
			if left, noted := r.left("v"); !noted || left <= 0 != want {
				t.Errorf("after %v another %v must pass, noted: %t", pause, left, noted)
			}
		})
	}
}

func TestAbsencesAreBounded(t *testing.T) {
	var r refusals
	for i := range mostAbsent + 10 {
		r.note(strconv.Itoa(i), time.Now())
	}
	if len(r.absent) != mostAbsent {
		t.Errorf("%d names are remembered, want %d", len(r.absent), mostAbsent)
	}
	if _, noted := r.left(strconv.Itoa(mostAbsent + 9)); !noted {
		t.Error("the last name is not remembered")
	}
}
