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

// codeOf returns the code of an RPC's failure: the cell of its Kind. The Kind of an error decides, whatever status the
// error wraps: a cloud's answer is not about this call. A call that was cancelled or timed out gets that code if its
// Kind only says that the outcome is open: the orchestrator retries.
func (a answers) codeOf(rpc string, err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	if own, ok := err.(interface{ GRPCStatus() *status.Status }); ok { // A wrapped status is another call's.
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

// statusOf returns the error that the orchestrator sees.
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
		return said.Err() // It says less, but nothing untrue.
	}
	return proven.Err()
}

// mostMessage is how many bytes of an error the orchestrator gets: they go into events, conditions and logs.
const mostMessage = 4096

// unsaid ends a message that is cut, and says how much is missing. A length has at most 19 digits.
const (
	unsaid     = "... (%d bytes more)"
	mostUnsaid = len(unsaid) - len("%d") + 19
)

// readable makes a message fit for people. The message may contain text of others, at any length, and with characters
// that change a terminal or the reading order.
func readable(message string) string {
	var b strings.Builder
	begin, end := 0, 0 // the part of the message that leaves room for unsaid, in the output and in the input
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

// rpcOf returns the name of the RPC in its full method, for example CreateVolume.
func rpcOf(fullMethod string) string { return fullMethod[strings.LastIndexByte(fullMethod, '/')+1:] }
