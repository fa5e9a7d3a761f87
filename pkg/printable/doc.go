// Package printable keeps control characters out of logs, which people read on terminals: names on a share, labels and
// what servers answer are others' to choose.
package printable
