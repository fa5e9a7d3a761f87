package main

import "time"

// rpcs is the number of RPCs of a lifecycle.
const rpcs = 8

// line is a part of a lifecycle's floor.
type line struct {
	count int
	what  string // the purpose of the part
	part  *series
}

func (l line) cost() time.Duration { return time.Duration(l.count) * l.part.median() }

// lines lists the necessary parts of a lifecycle in the pool. It omits parts of about a microsecond: statfs for the
// stats, reading the few blocks that prove a device blank, checking the mounts. It also omits the durable deletion of
// the record, which can be cheaper than writing it. The slower way to create a bind mount is listed for comparison.
func (f *floor) lines() []line {
	fast, slow := f.binds()
	calls := line{rpcs, "one for each RPC", &f.call}
	record := line{1, "CreateVolume: the volume survives a crash", &f.record}
	if f.pool == directoryPool {
		return []line{
			calls,
			record,
			{2, "the volume, and NodePublishVolume's target", &f.folder},
			{2, "staging path and target", fast},
			{0, "not counted", slow},
		}
	}
	return []line{
		calls,
		record,
		{1, "the volume", &f.imageFile},
		{1, "NodeStageVolume, NodeUnstageVolume", &f.loop},
		{1, "NodeStageVolume: every volume is new", &f.mkfs},
		{1, "staging path", &f.filesystem},
		{1, "NodePublishVolume's target", &f.folder},
		{1, "target", fast},
		{0, "not counted", slow},
	}
}

// lifecycle returns the floor of a whole lifecycle in the pool.
func (f *floor) lifecycle() time.Duration {
	var sum time.Duration
	for _, l := range f.lines() {
		sum += l.cost()
	}
	return sum
}
