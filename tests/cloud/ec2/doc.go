// Package ec2 is a strict EC2 API over HTTP, as far as volumes, snapshots and attachments go: the query protocol in,
// XML out, for the real SDK to talk to.
//
// It keeps the rules that a driver depends on and that a lenient fake would let it break: parameters that do not go
// together, unknown ones, signatures that are missing; states that take their time; client tokens, with their
// mismatches, which outlive what was made with them; device names, zones, attachment limits and Multi-Attach;
// modifications with their cool-down; quotas; pages and filters; a bucket of requests for each action. What the
// documentation leaves open is answered in the way that is worse for the caller.
//
// Answers can be made to lag behind what is so (Config.Lag), transitions to get stuck, and creations to fail after they
// were accepted. Faults on the way are for package faults, whose Dialect is here too.
//
// Sources: the Amazon EC2 API Reference (actions, error codes, request throttling, idempotency, eventual consistency)
// and the EBS User Guide (volume types, modifications, Multi-Attach, volume limits), version 2016-11-15 of the API.
package ec2
