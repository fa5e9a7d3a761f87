package printable

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Text returns a writer for records of text, one per Write. It quotes unprintable characters as Go does. A record is
// one line.
func Text(w io.Writer) io.Writer { return writer{w, quote} }

// JSON returns a writer for records of JSON, one per Write. It escapes unprintable characters as JSON does. Such
// characters occur only in strings.
func JSON(w io.Writer) io.Writer { return writer{w, escape} }

type writer struct {
	w      io.Writer
	hidden func(r rune) string
}

// Write writes one record.
func (p writer) Write(record []byte) (int, error) {
	line := strings.TrimSuffix(string(record), "\n")
	if _, err := io.WriteString(p.w, hide(line, p.hidden)+"\n"); err != nil {
		return 0, err
	}
	return len(record), nil
}

// Quote returns a text as one line. It quotes unprintable characters as Go does.
func Quote(text string) string { return hide(text, quote) }

func hide(text string, hidden func(r rune) string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(hidden(r))
		}
	}
	return b.String()
}

func quote(r rune) string {
	quoted := strconv.QuoteRuneToASCII(r)
	return quoted[1 : len(quoted)-1]
}

func escape(r rune) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune{r}) {
		fmt.Fprintf(&b, `\u%04x`, unit)
	}
	return b.String()
}
