// Package hotplug tests the node's pipeline with disks that are plugged in and unplugged, as in a cloud: on a real bus,
// with serial numbers like those of EC2 and OpenStack.
package hotplug
