package adversary

import "time"

// bearable is how long a call for a volume may take while another volume's server is silent. It is longer than a
// driver's own waits, for example ten seconds for a process that has the volume's own device locked, as udev does, and
// shorter than a silence. A slower world has the same limit, because its silences are not longer.
const bearable = 12 * time.Second

// silence is a time in which the server of a disk does not answer.
type silence struct {
	disk  *disk // nil for none
	began time.Time
	ended time.Time // zero while it lasts
	// How often a volume came into use and went out of it meanwhile: one of that disk, and one of another.
	own, others int
}

// within returns how much of the time between two times is silent.
func (s silence) within(from, to time.Time) time.Duration {
	if s.began.After(from) {
		from = s.began
	}
	if !s.ended.IsZero() && s.ended.Before(to) {
		to = s.ended
	}
	return to.Sub(from)
}

// heldUp blames the driver for a call for one volume that waits for the server of another, including its repetitions,
// and even if it was made before the silence. A call for a volume of the silent server may wait, and so may a call for
// all volumes.
func (w *world) heldUp(r request, began, now time.Time) {
	w.mu.Lock()
	s := w.silence
	w.mu.Unlock()
	if r.disk == nil || s.disk == nil || r.disk == s.disk {
		return
	}
	if waited := s.within(began, now); waited > bearable {
		w.blame("a call for one volume waits for nobody else's server: %s was under way for %v while another's was silent",
			r.name, waited.Round(time.Millisecond))
	}
}

// fallsSilent notes that the server of a disk does not answer, from now on or until now.
func (w *world) fallsSilent(d *disk) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silence = silence{disk: d, began: time.Now()}
}

func (w *world) isHeard() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silence.ended = time.Now()
}

// turned notes that a volume of a disk has come into use and gone out of it since a time. For another disk than the
// silent one this counts if it began in the silence.
func (w *world) turned(d *disk, began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch s := &w.silence; {
	case s.disk == nil || s.within(began, time.Now()) <= 0:
	case d == s.disk:
		s.own++
	case began.After(s.began):
		s.others++
	}
}

// vain returns why a schedule with such a silence has tested nothing; empty if it has tested something.
func (s silence) vain() string {
	switch {
	case s.disk == nil:
		return "no server fell silent"
	case s.own == 0:
		return "no volume of the silent server came into use and went out of it"
	case s.others == 0:
		return "no other volume came into use and went out of it while the server was silent"
	}
	return ""
}
