// Package report is the protocol between the process that opens disks and the agent that talks to Kubernetes, over HTTP
// on a Unix socket. It carries the volumes that were found and the progress of deletions one way, and the offers and
// wanted deletions the other way.
//
// The process that opens disks is root and has no token. The agent has a token and is not root. So the agent can only
// ask for what Wanted contains, and each request is checked as if it came from a stranger.
package report
