package main

import (
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/stowage-csi/stowage/pkg/printable"
)

// newLog returns the process's logger at klog's verbosity. Other packages get it as a slog.Logger. Libraries that use
// klog log to the same place.
func newLog(w io.Writer, format string, verbosity int) *slog.Logger {
	if format == "json" {
		// slog counts in the opposite direction: klog's -v=4 is slog's level -4.
		log := slog.New(slog.NewJSONHandler(printable.JSON(w), &slog.HandlerOptions{Level: slog.Level(-verbosity)}))
		klog.SetSlogLogger(log)
		return log
	}
	// klog's own logger drops the attributes of slog.Logger.With; its textlogger, which has the same format, does not.
	sink := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(verbosity),
		textlogger.Output(printable.Text(w))))
	log := slog.New(logr.ToSlogHandler(sink))
	klog.SetSlogLogger(slog.New(bySlog{log.Handler()}))
	return log
}

// bySlog is a handler to which klog passes its records as slog does, so that each value is quoted on one line. In a
// logr handler, klog would find the textlogger, which writes a value with a line break unquoted, over several lines.
type bySlog struct{ slog.Handler }
