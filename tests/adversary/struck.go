package adversary

// strike notes the disks on which a fault may make users' own writes fail. A driver that is killed, stopped or started
// with another configuration or broken records is no reason for that: its users' mounts stay.
func (w *world) strike(f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.struck == nil {
		w.struck = map[int]bool{}
	}
	switch f.Kind {
	case "full", "full-start", "read-only", "eio", "eio-start":
		w.struck[f.On] = true
	case "lost", "unplaced", "denied", "silent", "clock", "cloud", "unsteady":
		for disk := range w.disks {
			w.struck[disk] = true
		}
	}
}

// mayFail reports whether a fault may have made a user's own write to the volume fail.
func (a *actor) mayFail(v *volume) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.struck[a.setup.Classes[v.class].Disk]
}
