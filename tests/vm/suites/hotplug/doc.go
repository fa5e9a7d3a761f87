// Package hotplug drives the node's pipeline with disks that come and go, as a cloud's do: with serial numbers that are
// those of EC2 and OpenStack, and on a real bus.
package hotplug
