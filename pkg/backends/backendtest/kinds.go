package backendtest

import (
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// brokenChecks provoke failures with the help of the harness.
func brokenChecks(h Harness) []check {
	var checks []check
	for kind := backends.Unknown; kind <= backends.Unusable; kind++ {
		provoke, ok := h.Broken[kind]
		if !ok {
			continue
		}
		checks = append(checks, check{kind.String(), func(w *world) {
			err := provoke(w.TB, w.instance)
			w.fails("the provoked failure", err, kind)
			w.hasNoTwins()
		}})
	}
	return checks
}

// hasNoTwins checks that no handle is listed twice after a failure.
func (w *world) hasNoTwins() {
	w.Helper()
	handles, ok := w.listed(volumes(w))
	if slices.Sort(handles); ok && len(slices.Compact(slices.Clone(handles))) != len(handles) {
		w.Errorf("the list has entries twice: %q", handles)
	}
}
