// Package wipe makes the data of a local volume unreadable, or empties a filesystem.
//
// It works on what is held open: the caller has proven that this is the right disk or directory, and that nobody uses
// it. Every step can be cut short anywhere and be made again; a wipe of a device goes on where its last noted position
// was.
//
// What each method promises is checked at its end, by reading the device as package filesystem does before it formats.
package wipe
