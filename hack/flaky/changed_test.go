package main

import (
	"reflect"
	"testing"
)

func TestHunks(t *testing.T) {
	diff := "--- a/p/a_test.go\n+++ b/p/a_test.go\n@@ -1,2 +1 @@\n+x\n@@ -9,0 +12,3 @@ func TestB(t *testing.T) {\n+y\n@@ -20 +22,0 @@\n-z\n"
	want := map[string][]lines{"p/a_test.go": {{1, 1}, {12, 14}, {22, 22}}}
	if got := hunks(diff); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTestsAt(t *testing.T) {
	source := []byte("package p\n\nfunc TestA(t *testing.T) {\n\tt.Log()\n}\n\nfunc TestB(t *testing.T) {\n}\n\nfunc helper() {\n}\n")
	for _, tt := range []struct {
		part lines
		want []string
	}{
		{lines{4, 4}, []string{"TestA"}},
		{lines{5, 7}, []string{"TestA", "TestB"}},
		{lines{10, 10}, []string{"TestA", "TestB"}},
	} {
		if got, err := testsAt("a_test.go", source, []lines{tt.part}); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("lines %v: got %v, %v; want %v", tt.part, got, err, tt.want)
		}
	}
}
