package main

import (
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/stowage-csi/stowage/pkg/printable"
)

// newLog makes the process's logger at klog's verbosity. Everything below gets it as a slog.Logger;
// libraries that log through klog itself end up in the same place.
func newLog(w io.Writer, format string, verbosity int) *slog.Logger {
	if format == "json" {
		// slog counts the other way round: klog's -v=4 is slog's level -4.
		log := slog.New(slog.NewJSONHandler(printable.JSON(w), &slog.HandlerOptions{Level: slog.Level(-verbosity)}))
		klog.SetSlogLogger(log)
		return log
	}
	// klog's own logger forgets what slog.Logger.With adds; its textlogger, of the same format, does not.
	sink := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(verbosity),
		textlogger.Output(printable.Text(w))))
	log := slog.New(logr.ToSlogHandler(sink))
	klog.SetSlogLogger(slog.New(bySlog{log.Handler()}))
	return log
}

// bySlog is a handler that klog hands its records to as slog does: each value is quoted in one line then. With a logr
// handler it would find the textlogger within, which writes a value with a line break raw, over several lines.
type bySlog struct{ slog.Handler }
