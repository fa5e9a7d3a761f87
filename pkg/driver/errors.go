package driver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/absence"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/volume"
)

// codeOf is the code of a failure of an RPC: the cell of its Kind. An error that bears a Kind has no other code,
// whatever status it wraps: what a cloud answered is not about this call. A call that was cancelled or ran out of time
// says so where its Kind says no more than that its outcome is open: the orchestrator asks again.
func (a answers) codeOf(rpc string, err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	if own, ok := err.(interface{ GRPCStatus() *status.Status }); ok { // A status that is wrapped is another's.
		return own.GRPCStatus().Code()
	}
	kind := backends.KindOf(err)
	switch open := kind == backends.Unknown || kind == backends.Unavailable; {
	case open && errors.Is(err, context.Canceled):
		return codes.Canceled
	case open && errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	}
	return a.of(rpc, kind).code
}

// statusOf makes the error that the orchestrator sees.
func (a answers) statusOf(rpc string, err error) error {
	if err == nil {
		return nil
	}
	said := status.New(a.codeOf(rpc, err), readable(err.Error()))
	if !volume.IsAbsent(err) {
		return said.Err()
	}
	proven, failed := said.WithDetails(absence.Detail())
	if failed != nil {
		return said.Err() // It says less, and nothing that is not true.
	}
	return proven.Err()
}

// mostMessage is how many bytes of an error the orchestrator gets: it goes into events, conditions and logs.
const mostMessage = 4096

// unsaid tells at the end of a message how much of it is left out. A length has at most 19 digits.
const (
	unsaid     = "... (%d bytes more)"
	mostUnsaid = len(unsaid) - len("%d") + 19
)

// readable makes a message fit for people: what others wrote may be in it, at any length and with characters that
// change a terminal or the order of what is read.
func readable(message string) string {
	var b strings.Builder
	begin, end := 0, 0 // how much of the message leaves room for unsaid, as it is shown and as it was given
	for i, r := range message {
		if b.Len() <= mostMessage-mostUnsaid {
			begin, end = b.Len(), i
		}
		if unicode.IsPrint(r) && r != utf8.RuneError {
			b.WriteRune(r)
		} else {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		if b.Len() > mostMessage {
			return b.String()[:begin] + fmt.Sprintf(unsaid, len(message)-end)
		}
	}
	return b.String()
}

// rpcOf is the name of the RPC in its full method, such as CreateVolume.
func rpcOf(fullMethod string) string { return fullMethod[strings.LastIndexByte(fullMethod, '/')+1:] }
