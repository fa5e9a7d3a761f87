package crash

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"testing"
)

// driverLog is what the driver said in all its lives.
type driverLog struct {
	text     []byte
	messages map[string]int // on its own account, at level info and above; those about requests have the request's ID
	refusals map[string]int // of requests, by code
	mended   map[string]int // what each start found and put right, added up
	errors   []string       // messages of level error on its own account
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

// mend adds up what a message says of leftovers. A leftover that is mended by one start and made again by
// the next kill counts again.
func (d *driverLog) mend(entry map[string]any) {
	for _, key := range []string{"trash", "drafts", "quarantined", "grown", "thawed", "stale", "unreadable", "released"} {
		if n, ok := entry[key].(float64); ok && n > 0 {
			d.mended[key] += int(n)
		}
	}
}
