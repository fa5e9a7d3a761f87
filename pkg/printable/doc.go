// Package printable keeps control characters out of logs and events, which people read on terminals. Names on a share,
// labels and answers of servers may contain any text.
package printable
