package v1alpha1

import (
	"slices"
	"testing"
	"time"
)

func TestSetCondition(t *testing.T) {
	first := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	second := first.Add(time.Minute)
	other := Condition{Type: "Other", Status: "True", LastTransitionTime: "2000-01-01T00:00:00Z"}
	ready := Condition{Type: "Ready", Status: "True", LastTransitionTime: "2026-01-02T02:04:05Z"}
	one := SetCondition([]Condition{other}, Condition{Type: "Ready", Status: "True"}, first)
	if !slices.Equal(one, []Condition{other, ready}) {
		t.Errorf("a new condition: %+v", one)
	}
	ready.Message = "still"
	two := SetCondition(one, Condition{Type: "Ready", Status: "True", Message: "still"}, second)
	if !slices.Equal(two, []Condition{other, ready}) {
		t.Errorf("another message: %+v", two)
	}
	three := SetCondition(two, Condition{Type: "Ready", Status: "False"}, second)
	if three[1].LastTransitionTime != "2026-01-02T02:05:05Z" || two[1].Status != "True" {
		t.Errorf("another status: %+v, before it %+v", three, two)
	}
}
