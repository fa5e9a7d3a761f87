package ec2

import "time"

// modification is a volume's last modification.
type modification struct {
	from, to shape
	state    string
	at       time.Time
}

func (s *Server) modifyVolume(p *params) effect {
	id, wanted := p.id("VolumeId", "vol"), readShape(p)
	return func() (any, *fault) {
		v, f := s.volume(id)
		if f != nil {
			return nil, f
		}
		to := v.target(wanted)
		if f := s.modifiable(v, to); f != nil {
			return nil, f
		}
		m := modification{from: v.shape, to: to, state: "modifying", at: s.now}
		s.change(id, func(v *volume) { v.modification = &m })
		s.after(s.config.Modify, "modifying", func() {
			s.progress(id, m, "optimizing", func(v *volume) { v.shape = to })
			s.tellGrown(id, m)
			s.after(s.config.Optimize, "optimizing", func() { s.progress(id, m, "completed", func(*volume) {}) })
		})
		return modifyResponse{Modification: m.xml(id)}, nil
	}
}

// progress advances a modification if it is still the volume's last one.
func (s *Server) progress(id string, m modification, state string, edit func(v *volume)) {
	if v := s.volumes.now(id); v == nil || v.modification == nil || !v.modification.at.Equal(m.at) {
		return
	}
	s.change(id, func(v *volume) {
		v.modification.state = state
		edit(v)
	})
}

// tellGrown reports the new size of a volume if the modification has changed it.
func (s *Server) tellGrown(id string, m modification) {
	v := s.volumes.now(id)
	if s.config.Resized == nil || v == nil || v.size != m.to.size || m.from.size == m.to.size {
		return
	}
	for _, a := range v.attachments {
		if a.state == "attached" {
			s.config.Resized(a.instance, id, v.size)
		}
	}
}

// target returns the requested shape of the volume. Unset values are kept, except those that another type does not
// support.
func (v *volume) target(wanted shape) shape {
	to := v.shape
	if wanted.kind != "" && wanted.kind != v.kind {
		to.kind, to.iops, to.throughput = wanted.kind, 0, 0
	}
	if wanted.size != 0 {
		to.size = wanted.size
	}
	if wanted.iops != 0 {
		to.iops = wanted.iops
	}
	if wanted.throughput != 0 {
		to.throughput = wanted.throughput
	}
	to.complete()
	return to
}

func (s *Server) modifiable(v *volume, to shape) *fault {
	m := v.modification
	switch {
	case v.state != "available" && v.state != "in-use":
		return faultf("IncorrectState", "The volume '%s' is in state %s", v.id, v.state)
	case to.size < v.size:
		return faultf("InvalidParameterValue", "New size cannot be smaller than existing size")
	case m != nil && m.state != "completed" && m.state != "failed":
		return faultf("IncorrectModificationState", "Volume %s is being modified: its modification is %s", v.id, m.state)
	case m != nil && s.now.Sub(m.at) < s.config.Cooldown:
		return faultf("VolumeModificationRateExceeded", "You've reached the maximum modification rate per volume limit.")
	case to == v.shape: // The order of the checks is undocumented: the rate tells the caller less.
		return faultf("InvalidParameterValue", "The volume already is as requested")
	}
	if f := to.check(); f != nil {
		return f
	}
	return s.modificationQuota(v, to)
}

// modificationQuota checks that the increase of a modification is within the account's quotas. A request is refused as
// a whole ("Error codes for the Amazon EC2 API", MaxIOPSLimitExceeded and VolumeModificationSizeLimitExceeded).
func (s *Server) modificationQuota(v *volume, to shape) *fault {
	size, iops := to.size-v.size, to.iops-v.iops
	for _, other := range s.volumes.all() {
		size, iops = size+other.size, iops+other.iops
	}
	switch {
	case s.config.MaxGiB > 0 && to.size > v.size && size > s.config.MaxGiB:
		return faultf("VolumeModificationSizeLimitExceeded", "You have exceeded your maximum storage: %d GiB",
			s.config.MaxGiB)
	case s.config.MaxIOPS > 0 && to.iops > v.iops && iops > s.config.MaxIOPS:
		return faultf("MaxIOPSLimitExceeded", "You have exceeded your maximum IOPS: %d", s.config.MaxIOPS)
	}
	return nil
}

func (s *Server) describeModifications(p *params) effect {
	q := s.query(p, "vol", "VolumeId", "volume-id", "modification-state")
	return func() (any, *fault) {
		var response modificationsResponse
		next, f := page(s, q, s.volumes, func(v *volume) (filterable, bool) {
			if v.modification == nil {
				return filterable{}, false
			}
			return filterable{fields: map[string][]string{"volume-id": {v.id}, "modification-state": {v.modification.state}}},
				true
		}, func(v *volume) { response.Modifications = append(response.Modifications, v.modification.xml(v.id)) })
		response.Next = next
		return response, f
	}
}
