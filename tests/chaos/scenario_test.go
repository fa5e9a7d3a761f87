package chaos

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// operation is one call of node.Service.
type operation string

const (
	stage     operation = "stage"
	expand    operation = "expand"
	publish   operation = "publish"
	unpublish operation = "unpublish"
	unstage   operation = "unstage"
)

// form is the form of a volume.
type form string

const (
	directory form = "directory"
	image     form = "image"
	raw       form = "raw" // an image that is published as a block device
)

// scenario is an operation in a situation.
type scenario struct {
	name     string
	form     form
	fsType   string
	mib      int64 // the size at the volume's creation
	grownMiB int64 // the size at the operation, if different
	op       operation
	blank    bool // no filesystem yet
	dirty    bool // it was not unmounted
	readOnly bool // published read-only
	group    string
	torn     bool // staged, but the mount was removed outside the driver
	local    bool // the volume belongs to the local backend, whose calls are points too
}

// scenarios returns all scenarios, the cheap ones first.
func scenarios() []scenario {
	list := []scenario{
		{name: "directory", form: directory, op: stage},
		{name: "directory, group", form: directory, op: stage, group: "2345"},
		{name: "directory", form: directory, op: publish},
		{name: "directory, read-only", form: directory, op: publish, readOnly: true},
		{name: "directory", form: directory, op: unpublish},
		{name: "directory", form: directory, op: unstage},
	}
	for _, op := range []operation{stage, publish, expand, unpublish, unstage} {
		grown := int64(0)
		if op == expand {
			grown = 16
		}
		list = append(list, scenario{name: "raw", form: raw, mib: 8, grownMiB: grown, op: op})
	}
	for _, fs := range []scenario{
		{fsType: "ext4", mib: 16, grownMiB: 48}, {fsType: "xfs", mib: 300, grownMiB: 420},
		{fsType: "btrfs", mib: 128, grownMiB: 320},
	} {
		list = append(list, imageScenarios(fs.fsType, fs.mib, fs.grownMiB)...)
	}
	list = append(list,
		scenario{name: "raw, torn", form: raw, mib: 8, op: stage, torn: true},
		scenario{name: "local directory", form: directory, op: stage, local: true},
		scenario{name: "local directory", form: directory, op: unstage, local: true},
		scenario{name: "local image, formatted", form: image, fsType: "ext4", mib: 16, op: stage, local: true},
		scenario{name: "local image", form: image, fsType: "ext4", mib: 16, op: unstage, local: true},
		scenario{name: "local raw", form: raw, mib: 8, op: stage, local: true},
		scenario{name: "local raw", form: raw, mib: 8, op: unstage, local: true})
	for i, s := range list {
		list[i].name = s.name + ", " + string(s.op)
	}
	return list
}

// imageScenarios returns the scenarios of one filesystem.
func imageScenarios(fsType string, mib, grown int64) []scenario {
	base := scenario{form: image, fsType: fsType, mib: mib, op: stage}
	with := func(name string, change func(*scenario)) scenario {
		s := base
		s.name = fsType + name
		change(&s)
		return s
	}
	list := []scenario{
		with(", blank", func(s *scenario) { s.blank = true }),
		with(", formatted", func(*scenario) {}),
		with(", formatted, group", func(s *scenario) { s.group = "2345" }),
		with(", dirty", func(s *scenario) { s.dirty = true }),
		with(", to grow", func(s *scenario) { s.grownMiB = grown }),
		with("", func(s *scenario) { s.op = unstage }),
	}
	if fsType != "ext4" || mayResize() {
		list = append(list, with(", mounted", func(s *scenario) { s.op, s.grownMiB = expand, grown }))
	}
	if fsType == "ext4" {
		list = append(list,
			with(", blank, group", func(s *scenario) { s.blank, s.group = true, "2345" }),
			with("", func(s *scenario) { s.op = publish }),
			with(", read-only", func(s *scenario) { s.op, s.readOnly = publish, true }),
			with("", func(s *scenario) { s.op = unpublish }))
	}
	return list
}

// mayResize reports whether this process has the capability that the kernel requires to grow a mounted ext4.
func mayResize() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

// before returns the operations that precede the disturbed one.
func (s scenario) before() []operation {
	switch s.op {
	case stage:
		return nil
	case expand, publish:
		return []operation{stage}
	case unpublish:
		return []operation{stage, publish}
	case unstage:
		return []operation{stage, publish, unpublish}
	}
	return nil
}

// after returns the operations that end the volume's life on the node.
func (s scenario) after() []operation {
	life := []operation{stage, publish, unpublish, unstage}
	if s.op == expand {
		return life[1:]
	}
	return life[slices.Index(life, s.op)+1:]
}

// undo returns the operation with which an orchestrator that gives up undoes this one; empty if there is none.
func (s scenario) undo() operation {
	switch s.op {
	case stage:
		return unstage
	case publish:
		return unpublish
	case expand, unpublish, unstage:
	}
	return ""
}

// accessType returns the access type of the requests.
func (s scenario) accessType() backends.AccessType {
	if s.form == raw {
		return backends.Block
	}
	return backends.Mount
}
