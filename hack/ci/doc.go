// Command ci runs the steps that a change must pass, and reports the failures.
//
//	ci             the gate: every change passes it before it lands
//	ci fresh       the gate, with every test run anew, although go remembers that it passed
//	ci long        the rest: searches, virtual machines, clusters, other people's programs
//	ci STEP...     the steps named, in that order
//	ci touched     names the long steps that belong to the folders of the change at hand
//
// The first step fetches what the others need. The others get no modules from the network, so that a failing registry
// is not mistaken for a failing test. A step runs without the environment variables that environ.go lists, which
// change what a command of the Makefile does. Each step has a time limit, and a log below bin/ci, where those of the
// last ten runs stay. A step that passes is one line. The failures come last, each with its class, its first error, its
// seed and the command that repeats it. Processes that a step leaves running are ended before the next step, and named
// there too.
package main
