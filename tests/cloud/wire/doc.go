// Package wire is an in-memory network for HTTP. No part of it is outside the process, so that time can be simulated
// (testing/synctest). A test of several minutes then takes milliseconds, and a busy machine delays no call.
package wire
