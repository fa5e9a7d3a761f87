// Package spare keeps short notes in space that was allocated earlier, for when a disk is full.
//
// A user who filled a disk must be able to come back and free space, and the volume comes into use again only with a
// few notes. So the notes go to a file whose blocks are all allocated from the start: overwriting them needs no space.
// It is the only file that is written in place. Each note has its own page with a checksum, and a new note never takes
// the page of the one that it replaces: a kill leaves the old note or the new one.
//
// Notes are valid for one boot of the machine, so they are never synced. They are few and short; callers with space
// elsewhere do not use them.
package spare
