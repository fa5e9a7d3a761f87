package wire

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestFrames(t *testing.T) {
	var wire bytes.Buffer
	sent := []Frame{
		{Kind: Up, Seconds: 1.5},
		{Kind: Output, Program: "p", Text: "two\nlines, \x16 and \"quotes\""},
		{Kind: End, Program: "p", Code: 137},
	}
	sender := NewSender(&wire)
	for _, f := range sent {
		if err := sender.Send(f); err != nil {
			t.Fatal(err)
		}
	}
	// A guest that died sends a partial frame.
	wire.WriteString(`{"Kind":"don`)
	var got []Frame
	if err := Receive(&wire, func(f Frame) { got = append(got, f) }); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, sent) {
		t.Errorf("got %+v, want %+v", got, sent)
	}
}

func TestReceiveGarbage(t *testing.T) {
	err := Receive(strings.NewReader("Kernel panic\n"), func(f Frame) { t.Errorf("got the frame %+v", f) })
	if err == nil || !strings.Contains(err.Error(), "Kernel panic") {
		t.Errorf("got %v, want an error that shows the line", err)
	}
	broken := errors.New("broken")
	if err := Receive(io.MultiReader(strings.NewReader("{}"), failing{broken}), func(Frame) {}); !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's error", err)
	}
}

type failing struct{ err error }

func (r failing) Read([]byte) (int, error) { return 0, r.err }

func TestJob(t *testing.T) {
	dir := t.TempDir()
	want := Job{Programs: []Program{{Name: "m/p", Path: "0/p.test", Dir: "0", Args: []string{"-v"}, Temp: "/tmp",
		Limit: time.Minute}}}
	if err := want.Write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := ReadJob(dir)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
	if _, err := ReadJob(t.TempDir()); err == nil {
		t.Error("a job was read where there is none")
	}
}
