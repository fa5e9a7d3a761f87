package volumeset

// admit gives a set one worker more, if it has less than its share: half of those that the other sets leave. So sets whose driver
// hangs leave some to all others. A slot that is not admitted waits until a worker is free.
func (f *filler) admit(key slotKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	own, all := f.busy[key.set], 0
	for _, number := range f.busy {
		all += number
	}
	if share := max(1, (f.workers-(all-own))/2); own >= share {
		f.parked = append(f.parked, key)
		return false
	}
	f.busy[key.set]++
	return true
}

// leave gives the worker back, and lets those try that wait for one.
func (f *filler) leave(key slotKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.busy[key.set]--; f.busy[key.set] == 0 {
		delete(f.busy, key.set)
	}
	for _, waits := range f.parked {
		f.queue.Add(waits)
	}
	f.parked = nil
}
