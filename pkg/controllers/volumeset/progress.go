package volumeset

// progress is what this manager knows of a slot beyond what the set's status says.
type progress struct {
	queued bool // it is attempted, or waits for that
	class  string
	open   bool // a request may have made its volume, so that no refusal of a later one proves that there is none
	made   bool // its PersistentVolume is there, or was, and nobody has asked since
	taken  int  // how often it was taken from another manager, which may have asked too
	// withdrawn: it was given up, as nothing can have come of it. That is never taken back: the write that ends the
	// slot may come late.
	withdrawn bool
	stuck     bool // its volume may exist, and the driver refuses it now
	handle    string
}

// of returns the progress of a slot. The lock is held.
func (f *filler) of(key slotKey) *progress {
	if f.slots[key] == nil {
		f.slots[key] = &progress{}
	}
	return f.slots[key]
}

// fill begins to create the volume of a slot, which is of the class, once.
func (f *filler) fill(key slotKey, class string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.of(key); !p.queued {
		p.queued, p.class = true, class
		f.queue.Add(key)
	}
}

// inherit notes that a slot is being taken from another manager, before the set says so. It may have asked for the
// volume, also once more after all that this one knows.
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

// made notes that the PersistentVolume of a slot is there, unless the slot was taken once more meanwhile. From now on
// nothing is asked for the slot: it may end at any time.
func (f *filler) made(key slotKey, taken int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.of(key)
	p.made = p.taken == taken
}

// ask notes that a request is about to be sent, unless the slot has been given up. It reports whether it is the first:
// whether a refusal of it proves that there is no volume.
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

// refused notes that a request for a slot was refused. It gives the slot up if the request was the first, so that
// nothing came of it, and if no other manager has taken the slot meanwhile; or if the driver has proven that there is
// no volume, whoever asked for it before, and nobody has taken the slot since this request began.
func (f *filler) refused(key slotKey, first, absent bool, taken int) (ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.of(key)
	p.withdrawn = first && p.taken == 0 || absent && p.taken == taken
	p.open = !first && !p.withdrawn
	p.stuck = !p.withdrawn
	return p.withdrawn
}

// withdraw gives a slot up if nobody can have asked for its volume, and reports whether it is given up.
func (f *filler) withdraw(key slotKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.of(key)
	p.withdrawn = p.withdrawn || !p.open && !p.made && p.taken == 0
	return p.withdrawn
}

// progressOf returns what is known of a slot.
func (f *filler) progressOf(key slotKey) progress {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.slots[key]; p != nil {
		return *p
	}
	return progress{}
}
