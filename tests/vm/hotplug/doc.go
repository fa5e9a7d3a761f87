// Package hotplug plugs disks into the guest and unplugs them, as a cloud does. Tests in the guest talk to QEMU's
// monitor (QMP) at an address of the guest's network.
//
//	machine, err := hotplug.Connect(ctx)
//	disk, err := machine.Plug(ctx, hotplug.Disk{Model: hotplug.NVMe, Serial: "vol0123456789abcdef0", Bytes: 1 << 30})
//	err = disk.Unplug(ctx)
//
// Only one connection exists at a time. A disk that a test leaves plugged in when it dies stays until the guest ends.
package hotplug
