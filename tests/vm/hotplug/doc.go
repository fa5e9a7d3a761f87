// Package hotplug gives the guest disks and takes them away, as a cloud does: tests in the guest speak to QEMU's
// monitor (QMP), which the guest reaches at an address of its network.
//
//	machine, err := hotplug.Connect(ctx)
//	disk, err := machine.Plug(ctx, hotplug.Disk{Model: hotplug.NVMe, Serial: "vol0123456789abcdef0", Bytes: 1 << 30})
//	err = disk.Unplug(ctx)
//
// There is one connection at a time. What a test leaves plugged in when it dies stays until the guest ends.
package hotplug
