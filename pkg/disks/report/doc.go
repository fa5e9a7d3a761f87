// Package report is what the process that opens disks and the agent that speaks to Kubernetes say to each other, over
// HTTP at a Unix socket: what was found and how deletions go, and what is offered and wanted.
//
// The one that opens disks is root and has no token. The agent has a token and is not root. So the agent can ask for no
// more than what Wanted says, and each request is checked as if it came from a stranger.
package report
