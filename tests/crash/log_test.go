package crash

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"testing"
)

// driverLog holds the driver's messages in all its runs.
type driverLog struct {
	text     []byte
	messages map[string]int // not about a request, at level info and above; the others have a request ID
	refusals map[string]int // of requests, by code
	mended   map[string]int // the sum of the repairs of all starts
	errors   []string       // messages of level error without a request
	notable  [][]byte       // the lines of level info and above
}

// log reads the driver's log.
func (r *run) log(t *testing.T) driverLog {
	t.Helper()
	text, err := os.ReadFile(r.driver.Workspace.Log())
	if err != nil {
		t.Error(err)
	}
	d := driverLog{text: text, messages: map[string]int{}, refusals: map[string]int{}, mended: map[string]int{}}
	for line := range bytes.Lines(text) {
		d.add(line)
	}
	return d
}

func (d *driverLog) add(line []byte) {
	var entry map[string]any
	var level slog.Level
	if err := json.Unmarshal(line, &entry); err != nil || level.UnmarshalText(fmt.Append(nil, entry["level"])) != nil {
		d.errors = append(d.errors, "not a line of JSON: "+string(line))
		return
	}
	if level < slog.LevelInfo {
		return
	}
	d.notable = append(d.notable, line)
	switch request := entry["request"]; {
	case request != nil && entry["code"] != nil:
		d.refusals[fmt.Sprint(entry["code"])]++
	case request == nil && level >= slog.LevelError:
		d.errors = append(d.errors, string(line))
	default:
		d.messages[fmt.Sprintf("%q", entry["msg"])]++
		d.mend(entry)
	}
}

// mend adds up the leftovers in a message. A leftover that one start repairs and the next kill causes again counts
// again.
func (d *driverLog) mend(entry map[string]any) {
	for _, key := range []string{"trash", "drafts", "quarantined", "grown", "thawed", "stale", "unreadable", "released"} {
		if n, ok := entry[key].(float64); ok && n > 0 {
			d.mended[key] += int(n)
		}
	}
}
