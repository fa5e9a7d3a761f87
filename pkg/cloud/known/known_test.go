package known

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatHasEndedStaysSo(t *testing.T) {
	var things Things[int]
	if !things.Show("v", 1) || things.Ended("v") {
		t.Error("a thing that is shown has ended")
	}
	things.End("v")
	if things.Show("v", 2) || !things.Ended("v") {
		t.Error("an old read brought a thing back")
	}
	if value, ok := things.Last("v"); ok {
		t.Errorf("what has ended is still %d", value)
	}
}

// A cloud may bring back a deleted thing: the end is certain only for as long as a read may be older than it.
func TestWhatHasEndedMayComeBackLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var things Things[int]
		things.End("v")
		<-time.After(age + 1)
		if things.Ended("v") || !things.Show("v", 1) {
			t.Error("it is gone for ever")
		}
		if value, ok := things.Last("v"); !ok || value != 1 {
			t.Errorf("what is back is %d, %t", value, ok)
		}
	})
}

func TestWhatWasShownIsBelievedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var things Things[int]
		things.Show("v", 1)
		things.Show("w", 2)
		if value, ok := things.Last("v"); !ok || value != 1 {
			t.Errorf("it is %d, %t; want 1", value, ok)
		}
		if found := things.Which(func(n int) bool { return n > 1 }); len(found) != 1 || found[0] != 2 {
			t.Errorf("found %v, want 2", found)
		}
		<-time.After(time.Minute)
		if value, ok := things.Lately("v", time.Minute); !ok || value != 1 {
			t.Errorf("a minute ago it was %d, %t; want 1", value, ok)
		}
		if value, ok := things.Lately("v", time.Minute-1); ok {
			t.Errorf("it is still %d after less than a minute", value)
		}
		<-time.After(age + 1)
		if value, ok := things.Last("v"); ok || len(things.Which(func(int) bool { return true })) != 0 {
			t.Errorf("it is still %d after a long time", value)
		}
	})
}

func TestAbsenceIsCountedFromItsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var things Things[int]
		if took := things.Miss("v"); took != 0 {
			t.Errorf("missed for the first time since %v", took)
		}
		<-time.After(time.Minute)
		if !things.Missed("v") {
			t.Error("it is not missed")
		}
		if took := things.Miss("v"); took != time.Minute {
			t.Errorf("missed for %v, want a minute", took)
		}
		things.Show("v", 1)
		if took := things.Miss("v"); took != 0 {
			t.Errorf("it was shown meanwhile, and counts as missed for %v", took)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	var things Things[int]
	for i := range keep + 10 {
		things.Show(fmt.Sprint(i), i)
		things.Miss(fmt.Sprint("m", i))
		things.End(fmt.Sprint("e", i))
	}
	if len(things.shown) != keep || len(things.missed) != keep || len(things.ended) != keep {
		t.Errorf("%d, %d and %d are remembered, want %d", len(things.shown), len(things.missed), len(things.ended), keep)
	}
}
