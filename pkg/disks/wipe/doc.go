// Package wipe makes the data of a local volume unreadable, or empties a filesystem.
//
// It works on open files: the caller has proven that this is the right disk or directory, and that it is not in use.
// Every step can be interrupted at any point and repeated. A wipe of a device resumes at its last noted position.
//
// At the end the result of each method is checked by reading the device, as package filesystem does before it formats.
package wipe
