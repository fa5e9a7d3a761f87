package ec2

import (
	"fmt"
	"maps"
	"time"
)

// power is the state of an instance since an instant.
type power struct {
	state    string
	code     int
	launched time.Time
	reason   string
}

func stateCodes() map[string]int {
	return map[string]int{"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64,
		"stopped": 80}
}

// SetPower puts an instance into a state, such as stopped, as people and hardware do. An instance that was not running
// and becomes pending or running counts as started anew. A terminated instance loses its volumes. EC2 shows a
// hibernated instance as stopped, with another reason.
func (s *Server) SetPower(id, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reason := "Client.UserInitiatedShutdown"
	if state == "hibernated" {
		state, reason = "stopped", "Client.UserInitiatedHibernate"
	}
	code, known := stateCodes()[state]
	before := s.powers.now(id)
	if !known || before == nil {
		panic(fmt.Sprintf("the instance %q cannot be %q", id, state)) // A test's mistake.
	}
	s.advance()
	next := power{state: state, code: code, launched: before.launched}
	switch {
	case code <= 16 && before.code > 16:
		next.launched = s.now
	case code > 16:
		next.reason = reason
	}
	s.powers.put(id, s.now, &next)
	if state == "terminated" {
		s.loseVolumes(id)
	}
}

// Forget makes EC2 forget a terminated instance, as it does after about an hour ("Terminate Amazon EC2 instances", EC2
// User Guide).
func (s *Server) Forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	if p := s.powers.now(id); p == nil || p.state != "terminated" {
		panic(fmt.Sprintf("the instance %q is not terminated", id)) // A test's mistake.
	}
	delete(s.instances, id)
}

// launched reports whether an instance exists and is known everywhere.
func (s *Server) launched(id string) bool {
	p := s.powers.now(id)
	return s.instances[id] != nil && p != nil && s.spread(p.launched)
}

// InstanceTags returns the tags of an instance, or nil if it does not exist.
func (s *Server) InstanceTags(id string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, ok := s.instances[id]; ok {
		return maps.Clone(i.Tags)
	}
	return nil
}

// loseVolumes detaches the volumes of an instance, which no longer uses them.
func (s *Server) loseVolumes(instance string) {
	for _, v := range s.volumes.all() {
		if n := v.attached(instance); n >= 0 && v.attachments[n].state != "detaching" {
			delete(s.used, v.id)
			s.beginDetach(v.id, instance)
		}
	}
}

// showPower adds the power state of an instance, as it was Config.Lag ago.
func (s *Server) showPower(x *instanceXML, at time.Time) {
	p := s.powers.then(x.ID, at)
	if p == nil {
		return
	}
	x.Code, x.State, x.Launched, x.Reason = p.code, p.state, p.launched.UTC().Format("2006-01-02T15:04:05.000Z"), nil
	if p.reason != "" {
		x.Reason = &reasonXML{p.reason, p.reason + ": User initiated shutdown"}
	}
}

type reasonXML struct {
	Code    string `xml:"code"`
	Message string `xml:"message"`
}
