package params

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// quoteBytes is how much of a key or a value an error message repeats.
const quoteBytes = 64

// mostProblems is how many problems an error names: nobody reads more of them.
const mostProblems = 8

// problems collects the errors in given parameters, each as a sentence.
type problems struct {
	sentences []string // at most mostProblems
	more      int      // omitted problems
	lost      bool     // some unknown key resembles no known one
}

func (l *problems) add(format string, args ...any) {
	if len(l.sentences) == mostProblems {
		l.more++
		return
	}
	l.sentences = append(l.sentences, fmt.Sprintf(format, args...))
}

func (l *problems) badValue(key, value string, p *parameter) {
	shown := "is " + quote(secret.Option(value))
	if secret.Named(key) || secret.Named(p.key) {
		shown = "has a value that is not allowed, and that is not shown"
	}
	l.add("parameter %s %s: use %s", quote(key), shown, p.advice())
}

func (l *problems) givenTwice(first, second string) {
	l.add("parameters %s and %s are the same: give one of them", quote(first), quote(second))
}

func (l *problems) unknownKey(key string, s *schema) {
	near, ok := s.nearest(key)
	shown := quote(secret.Option(key))
	switch {
	case !ok:
		l.lost = true
		l.add("parameter %s is not known", shown)
	case strings.EqualFold(near, key):
		l.add("parameter %s is not known: did you mean %q (upper and lower case differ)?", shown, near)
	default:
		l.add("parameter %s is not known: did you mean %q?", shown, near)
	}
}

// err joins the problems into one error, in the order of the keys; nil if there are none.
func (l *problems) err(s *schema) error {
	if len(l.sentences) == 0 {
		return nil
	}
	if l.more > 0 {
		l.sentences = append(l.sentences, fmt.Sprintf("%d more parameters are wrong", l.more))
	}
	if l.lost {
		l.sentences = append(l.sentences, s.known())
	}
	return failure.Errorf(failure.Invalid, "%s", strings.Join(l.sentences, "; "))
}

// known lists the keys that have an effect.
func (s *schema) known() string {
	keys := map[string]bool{}
	for _, p := range s.parameters {
		if !p.ignored() {
			keys[p.key] = true
		}
	}
	if len(keys) == 0 {
		return "no parameters are known here"
	}
	return "the known parameters are " + strings.Join(slices.Sorted(maps.Keys(keys)), ", ")
}

// quote makes external text fit for an error message: it escapes control characters, and replaces the rest of a long
// text by its length.
func quote(text string) string {
	if len(text) <= quoteBytes {
		return strconv.Quote(text)
	}
	cut := quoteBytes
	for cut > quoteBytes-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%s... (%d bytes)", strconv.Quote(text[:cut]), len(text))
}
