package nfs

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

// After a restart with grace, a client from before reclaims its open file, and the file is complete.
func TestGrace(t *testing.T) {
	server := start(t, nfsd.Config{Grace: true})
	export := nfsd.Export{Path: folder(t)}
	must(t, server.Export(t.Context(), export))
	target := mount(t, export.Path, "vers=4.2,hard")
	path := filepath.Join(target, "file")
	begun := time.Now()
	must(t, within(t, func() error { return write(path, "before") }))
	t.Logf("the first file took %v", time.Since(begun).Round(time.Millisecond))
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	defer file.Close()
	must(t, server.Kill(t.Context()))
	must(t, server.Resume(t.Context()))
	begun = time.Now()
	must(t, within(t, func() error {
		if _, err := file.WriteString(" and after"); err != nil {
			return err
		}
		return file.Sync()
	}))
	t.Logf("what was open went on after %v", time.Since(begun).Round(time.Millisecond))
	must(t, holds(filepath.Join(export.Path, "file"), "before and after"))
	must(t, within(t, func() error { return write(filepath.Join(target, "new"), "new") }))
	if took := time.Since(begun); took < 3*time.Second {
		t.Errorf("a new file could be opened after %v: there was no time of grace", took)
	}
}
