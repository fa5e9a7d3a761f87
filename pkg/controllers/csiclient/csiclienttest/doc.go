// Package csiclienttest has the answers of a driver, for tests of those who ask one: only csiclient speaks gRPC.
package csiclienttest
