package disks

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/pkg/durable"
)

// The note of the newest state of a NodeStorage that an agent has read.
const (
	agentFolder = "agent"
	sourceNote  = "source"
)

// unread stands for a NodeStorage whose note cannot be read: each agent must then prove that its state is the newest.
const unread = "unread"

// readSource reads the note, and returns no state if there is none. It does not fail: a start must not need this note.
func (n notes) readSource() report.Source {
	all, err := readAll[report.Source](n, agentFolder)
	switch s := all[sourceNote]; {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return report.Source{Object: unread}
	case s != nil:
		return *s
	}
	return report.Source{}
}

// writeSource writes the note. It creates the folder, because a start must not need to write.
func (n notes) writeSource(s report.Source) error {
	if err := durable.MakeAll(filepath.Join(n.dir, agentFolder), 0o700); err != nil {
		return err
	}
	return n.write(agentFolder, sourceNote, s)
}

// accept fails for what an agent has read in an older state of the NodeStorage than is known: of two agents, as while a
// pod is replaced, one may have an old cache. It would withdraw offers, or have a withdrawn wipe begun anew. If the
// NodeStorage is another, or the cluster's objects were restored, the agent must have read past its cache. The error is
// report.ErrOlder. The lock is held.
func (e *Engine) accept(s report.Source) error {
	known := e.source
	isOlder := s.Object != known.Object || s.Generation < known.Generation
	switch {
	case s.Object == "": // An agent of an earlier version does not say.
		return nil
	case known.Object == unread && !s.IsNewest:
		return fmt.Errorf("%w: this cannot be ruled out, because the note of the newest state in %s cannot be read, and "+
			"nothing shows that generation %d of the object %s is the newest", report.ErrOlder,
			filepath.Join(e.notes.dir, agentFolder), s.Generation, s.Object)
	case isOlder && known.Object != "" && !s.IsNewest:
		return fmt.Errorf("%w: this is generation %d of the object %s, and known is generation %d of the object %s",
			report.ErrOlder, s.Generation, s.Object, known.Generation, known.Object)
	}
	s.IsNewest = false
	if s == known && e.isNoted {
		return nil
	}
	e.source = s
	err := e.notes.writeSource(s)
	e.isNoted = err == nil
	if err != nil { // As long as this process runs, it is known. The agent's next wish notes it.
		e.options.Log.Warn("the state of the NodeStorage is not noted", "error", err)
	}
	return nil
}
