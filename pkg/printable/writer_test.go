package printable_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode"

	"github.com/stowage-csi/stowage/pkg/printable"
)

const foreign = "a\x1b[31m \u009b2J \u202ekcab \x7f \U000e0001 \xff \" \\ é 漢"

// TestJSONIsPrintable logs foreign text as JSON. A terminal gets no control characters, and a parser gets the original
// text.
func TestJSONIsPrintable(t *testing.T) {
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(printable.JSON(&log), nil)).Warn(foreign, foreign, errors.New(foreign))
	line, ended := strings.CutSuffix(log.String(), "\n")
	if !ended || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("it is %q, want one printable line", log.String())
	}
	var record map[string]any
	if err := json.Unmarshal(log.Bytes(), &record); err != nil {
		t.Fatal(err)
	}
	want := strings.ToValidUTF8(foreign, "\ufffd")
	if record["msg"] != want || record[want] != want {
		t.Errorf("it says %q, want %q", record, want)
	}
}

// TestTextIsPrintable checks that a record of text is one line.
func TestTextIsPrintable(t *testing.T) {
	var log bytes.Buffer
	record := "a\nb\x1b\u009b\n"
	if n, err := printable.Text(&log).Write([]byte(record)); err != nil || n != len(record) {
		t.Errorf("it took %d of %d bytes, %v", n, len(record), err)
	}
	if want := `a\nb\x1b\u009b` + "\n"; log.String() != want {
		t.Errorf("it is %q, want %q", log.String(), want)
	}
}

// TestWriterFails has an underlying writer that accepts nothing.
func TestWriterFails(t *testing.T) {
	broken := errors.New("no space left on device")
	if n, err := printable.Text(full{broken}).Write([]byte("x\n")); n != 0 || !errors.Is(err, broken) {
		t.Errorf("it took %d bytes, %v", n, err)
	}
}

type full struct{ err error }

func (f full) Write([]byte) (int, error) { return 0, f.err }
