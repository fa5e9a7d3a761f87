package volumeset

// progress is this manager's knowledge of a slot beyond the set's status.
type progress struct {
	queued bool // an attempt runs or waits
	class  string
	open   bool // a request may have created its volume, so the refusal of a later one proves nothing
	made   bool // its PersistentVolume exists or existed, and no request was sent since
	taken  int  // how often it was taken over from another manager, which may have sent requests too
	// withdrawn: the slot was given up, because its volume cannot exist. Only inherit resets it: the write that removes
	// the slot may be late.
	withdrawn bool
	stuck     bool   // its volume may exist, and the driver refuses the request now
	handle    string // which the driver returned last
}

// of returns the progress of a slot. The caller holds the lock.
func (f *filler) of(key slotKey) *progress {
	if f.slots[key] == nil {
		f.slots[key] = &progress{}
	}
	return f.slots[key]
}

// fill queues the creation of a slot's volume of the class, unless it is queued already.
func (f *filler) fill(key slotKey, class string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.of(key); !p.queued {
		p.queued, p.class = true, class
		f.queue.Add(key)
	}
}

// inherit notes that a slot is being taken from another manager, before the set says so. That manager may have asked
// for the volume, even later than this manager knows.
func (f *filler) inherit(key slotKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.of(key)
	p.made, p.withdrawn, p.taken = false, false, p.taken+1
}

// taken returns how often a slot was taken from another manager.
func (f *filler) taken(key slotKey) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of(key).taken
}

// made notes that the PersistentVolume of a slot exists, unless the slot was taken over again meanwhile. No further
// request is sent for the slot, because it may be removed at any time.
func (f *filler) made(key slotKey, taken int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.of(key)
	p.made = p.taken == taken
}

// ask notes that a request is about to be sent, unless the slot has been given up. First reports whether it is the
// first request, so that its refusal proves that no volume exists.
func (f *filler) ask(key slotKey) (may, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.of(key)
	if p.withdrawn {
		return false, false
	}
	first, p.open = !p.open && p.taken == 0, true
	return true, first
}

// refused notes that the driver refused a request for a slot, and reports whether the slot is given up. A slot is given
// up if the request was the first and the slot was never taken over from another manager. It is also given up if the
// driver has proven that no volume exists, and the slot was not taken over since this request began.
func (f *filler) refused(key slotKey, first, absent bool, taken int) (ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.of(key)
	p.withdrawn = first && p.taken == 0 || absent && p.taken == taken
	p.open = !first && !p.withdrawn
	p.stuck = !p.withdrawn
	return p.withdrawn
}

// withdraw gives up a slot if no request can have created its volume, and reports whether the slot is given up.
func (f *filler) withdraw(key slotKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.of(key)
	p.withdrawn = p.withdrawn || !p.open && !p.made && p.taken == 0
	return p.withdrawn
}

// progressOf returns a copy of the progress of a slot.
func (f *filler) progressOf(key slotKey) progress {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.slots[key]; p != nil {
		return *p
	}
	return progress{}
}
