package v1alpha1

import "testing"

func TestUseQuestion(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "{": "", `{"state":"Clean"}`: "",
		`{"name":"scrub-1","state":"Scrubbing"}`:                                 "scrub-1/Scrubbing",
		`{"name":"scrub-1","state":"Scrubbing","claim":"uid","failures":1}`:      "scrub-1/Scrubbing",
		`{"name":"scrub-1","state":"Clean","claim":"uid","message":"something"}`: "scrub-1/Clean",
	} {
		if have := UseQuestion(text); have != want {
			t.Errorf("the question of %s is %q, want %q", text, have, want)
		}
	}
}
