// Command demo shows that the driver serves local volumes. It acts as a container orchestrator, step by step, checks
// the real effects in addition to the answers, and proves that nothing is left.
//
// It exits with 0 if every check succeeded, with 1 if one failed, and with 2 if this machine lacks a requirement.
package main
