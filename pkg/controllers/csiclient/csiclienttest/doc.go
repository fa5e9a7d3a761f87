// Package csiclienttest has a driver's answers for tests of its callers. Only csiclient speaks gRPC.
package csiclienttest
