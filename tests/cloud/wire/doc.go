// Package wire is a network that is in memory: HTTP goes over it as over sockets, and because nothing of it is outside
// the process, time can be simulated (testing/synctest). A test of what happens within minutes then takes milliseconds,
// and a busy machine makes no call late.
package wire
