// Command demo shows that the driver serves local volumes: it does what a container orchestrator does, step by
// step, checks each outcome in the world and not in the answers alone, and proves that nothing is left.
//
// It exits with 0 when every check held, with 1 when one did not, and with 2 when this machine lacks
// something that it needs.
package main
