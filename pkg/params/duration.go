package params

import (
	"reflect"
	"strings"
	"time"
)

// Duration is a span of time, written in hours, minutes and seconds: "24h", "1h30m", "90s".
type Duration time.Duration

// String returns the canonical text.
func (d Duration) String() string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

const durationForms = "a duration in whole hours, minutes or seconds, such as 24h or 1h30m"

type durationCodec struct{}

func (durationCodec) name() string { return "duration" }
func (durationCodec) form() string { return durationForms }

func (durationCodec) parse(text string, to reflect.Value) bool {
	d, err := time.ParseDuration(text)
	if err != nil || strings.Trim(text, "0123456789hms") != "" || strings.Contains(text, "ms") ||
		strings.HasPrefix(text, "0") && text != "0s" {
		return false
	}
	to.SetInt(int64(d))
	return true
}

func (durationCodec) format(from reflect.Value) string { return Duration(from.Int()).String() }
