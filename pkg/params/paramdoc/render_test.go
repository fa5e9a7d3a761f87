package paramdoc

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/params"
)

type storage struct {
	Pool string      `param:"pool" default:"image" enum:"image|directory" doc:"Pool to take the volume from."`
	Odd  string      `param:"odd" alias:"oldOdd|olderOdd" default:"a|b" doc:"Text with | and <tags>."`
	Size params.Size `param:"chunk" min:"1Ki" max:"1Mi" default:"4096"`
	Wipe bool        `param:"wipe"`
	_    string      `param:"legacy" alias:"older" doc:"Once had a meaning."`
	_    string      `param:"hint"`
}

type mutable struct {
	IOPS *int64 `param:"iops" min:"100" doc:"Operations per second."`
}

func sections() []Section {
	return []Section{
		{Title: "StorageClass", Intro: "For new volumes.\n", Target: &storage{}},
		{Title: "VolumeAttributesClass", Target: mutable{}},
		{Title: "VolumeSnapshotClass", Intro: "None."},
	}
}

func TestRenderMatchesGolden(t *testing.T) {
	const golden = "testdata/page.md"
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := Render(&page, sections()); err != nil {
		t.Fatal(err)
	}
	if page.String() != string(want) {
		t.Errorf("the page differs from %s; it is now:\n%s", golden, page.String())
	}
}

func TestRenderWritesNothingOnAMistake(t *testing.T) {
	type wrong struct {
		Level int `param:"level" max:"3" default:"4"`
	}
	var page bytes.Buffer
	err := Render(&page, append(sections(), Section{Title: "Broken", Target: wrong{}}))
	if err == nil || !strings.Contains(err.Error(), `section "Broken"`) || !strings.Contains(err.Error(), `"4"`) {
		t.Errorf("error is %v, want one that names the section and the default", err)
	}
	if page.Len() != 0 {
		t.Errorf("%d bytes were written all the same", page.Len())
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestRenderReportsTheWriter(t *testing.T) {
	want := errors.New("disk full")
	if err := Render(brokenWriter{want}, sections()); !errors.Is(err, want) {
		t.Errorf("error is %v, want %v", err, want)
	}
}

func TestRenderCountsEveryKeyOfMetadata(t *testing.T) {
	var page bytes.Buffer
	if err := Render(&page, []Section{{Title: "Sidecars", Target: params.Metadata{}}}); err != nil {
		t.Fatal(err)
	}
	for _, f := range params.Describe(params.Metadata{}) {
		if !strings.Contains(page.String(), "`"+f.Key+"`") {
			t.Errorf("%s is not on the page", f.Key)
		}
	}
}
