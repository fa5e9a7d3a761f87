// Package workload is what a user of a cluster makes, for tests: claims, pods and snapshots in a namespace of the
// test's own. It waits by watching, and what does not become as it should within its time is shown with its events and
// the driver's log. When the test ends the namespace is deleted, and nothing may be left of its volumes: no
// PersistentVolume, and on the node no file, mount or loop device.
package workload
