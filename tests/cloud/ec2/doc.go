// Package ec2 is a strict EC2 API over HTTP for volumes, snapshots and attachments: the query protocol in, XML out, for
// the real SDK.
//
// It enforces the rules that a driver depends on and that a lenient fake would let it break: combinations of
// parameters, unknown parameters, missing signatures; the duration of states; client tokens, with their mismatches,
// which outlive the resources that they created; device names, zones, attachment limits and Multi-Attach; modifications
// with their cool-down; quotas; pages and filters; a bucket of requests for each action. Where the documentation leaves
// a choice, the API answers in the way that is worse for the caller.
//
// Answers can lag behind the true state (Config.Lag), transitions can get stuck, and creations can fail after they were
// accepted: without a usable KMS key, the volume is then gone (Server.BreakKey). Faults of the network are simulated by
// package faults, whose Dialect for EC2 is here.
//
// Sources: the Amazon EC2 API Reference (actions, error codes, request throttling, idempotency, eventual consistency)
// and the EBS User Guide (volume types, modifications, Multi-Attach, volume limits), version 2016-11-15 of the API.
package ec2
