package volumeset

// progress is what this manager knows of a slot beyond what the set's status says.
type progress struct {
	queued bool // it is attempted, or waits for that
	open   bool // a request may have made its volume, so that no refusal of a later one proves that there is none
	made   bool // its PersistentVolume is there, or was, and nobody has asked since
	taken  int  // how often it was taken from another manager, which may have asked too
}

// of returns the progress of a slot. The lock is held.
func (f *filler) of(key slotKey) *progress {
	if f.slots[key] == nil {
		f.slots[key] = &progress{}
	}
	return f.slots[key]
}

// fill begins to create the volume of a slot, once.
func (f *filler) fill(key slotKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.of(key); !p.queued {
		p.queued = true
		f.queue.Add(key)
	}
}

// inherit notes that a slot is being taken from another manager, before the set says so. It may have asked for the volume, also
// once more after all that this one knows.
func (f *filler) inherit(key slotKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.of(key)
	p.made, p.taken = false, p.taken+1
}

// taken returns how often a slot was taken from another manager.
func (f *filler) taken(key slotKey) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of(key).taken
}

// made notes that the PersistentVolume of a slot is there, unless the slot was taken once more meanwhile. From now on nothing is asked
// for the slot: it may end at any time.
func (f *filler) made(key slotKey, taken int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.of(key)
	p.made = p.taken == taken
}

// ask notes that a request is about to be sent, and reports whether it is the first: whether a refusal of it proves that there
// is no volume.
func (f *filler) ask(key slotKey) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.of(key)
	first, p.open = !p.open && p.taken == 0, true
	return first
}

// refused notes that the first request for a slot was refused, so that nothing came of it.
func (f *filler) refused(key slotKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(key).open = false
}

// isMade reports whether the PersistentVolume of a slot is there, or was.
func (f *filler) isMade(key slotKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.slots[key]
	return p != nil && p.made
}
