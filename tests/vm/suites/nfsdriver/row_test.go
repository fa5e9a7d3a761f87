package nfsdriver

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/status"
)

// answer is the result that a caller saw.
type answer struct {
	err  error
	took time.Duration
}

// String returns the code and the time.
func (a answer) String() string { return status.Code(a.err).String() + " " + seconds(a.took) }

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) }

// row is a line of the table.
type row struct {
	fault, call   string
	limit         time.Duration
	first, second answer        // the call and its retry, while the server fails
	other         time.Duration // a whole life on the other server, at the same time
	recovered     time.Duration // from the end of the failure until the call has succeeded
	failure       string        // of the row itself
}

// table formats all rows, with the last message that the caller saw.
func table(rows []row) string {
	var b strings.Builder
	const form = "%-22s %-10s %5s  %-22s %-22s %8s %10s  %s\n"
	fmt.Fprintf(&b, "\n"+form, "the server is", "call", "has,s", "answer, s", "asked again", "other,s", "recovered",
		"sentence")
	for _, r := range rows {
		fmt.Fprintf(&b, form, r.fault, r.call, seconds(r.limit), r.first, r.second, seconds(r.other), seconds(r.recovered),
			r.sentence())
	}
	return b.String()
}

// sentence returns the caller's error message: that of the second answer if it has one, or else of the first.
func (r row) sentence() string {
	return cmp.Or(r.failure, told(r.second), told(r.first), "-")
}

func told(a answer) string {
	if a.err == nil {
		return ""
	}
	return status.Convert(a.err).Message()
}
