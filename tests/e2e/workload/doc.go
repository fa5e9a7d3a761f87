// Package workload creates the objects of a cluster's user, for tests: claims, pods and snapshots in the test's own
// namespace. It waits by watching. If an object does not reach its expected state in time, the test shows its events
// and the driver's log. When the test ends, the namespace is deleted and nothing may be left of its volumes: no
// PersistentVolume, and on the node no file, mount or loop device.
package workload
