// Package spare keeps short notes in room that was taken while there was some, for when a disk is full.
//
// Whoever filled a disk must be able to come back and free some of it, and his volume comes into use again only with
// a few notes. So they go to a file that has all of its blocks from the start: to write over those needs no room. It
// is the one file that is written in place. Each note has a page of its own with a checksum, and a new one never
// takes the page of the one that it replaces: a kill leaves the old note or the new one.
//
// Notes are of one boot of the machine, so that none is ever synced. They are few and short; who has room elsewhere
// does not use them.
package spare
