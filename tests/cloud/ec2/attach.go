package ec2

import (
	"regexp"
	"slices"
)

// mostShared is the maximum number of instances of a Multi-Attach volume.
const mostShared = 16

func (s *Server) attachVolume(p *params) effect {
	id, instance, device := p.id("VolumeId", "vol"), p.id("InstanceId", "i"), p.required("Device")
	if device != "" && !regexp.MustCompile(`^/dev/(sd[a-z]([1-9]|1[0-5])?|xvd([a-z]|[a-d][a-z]))$`).MatchString(device) {
		p.blame(faultf("InvalidParameterValue", "Value (%s) for parameter device is invalid.", device))
	}
	return func() (any, *fault) {
		if f := s.attachable(id, instance, device); f != nil {
			return nil, f
		}
		stays := s.full(s.instances[instance])
		a := attachment{instance: instance, device: device, state: "attaching", at: s.now}
		s.change(id, func(v *volume) {
			v.state = "in-use"
			v.attachments = append(v.attachments, a)
		})
		if !stays {
			s.after(s.config.Attach, "attaching", func() { s.finishAttach(id, a) })
		}
		return attachResponse{XMLName: name("AttachVolume"), attachmentXML: a.xml(id)}, nil
	}
}

// attachable returns the rule that forbids an attachment, or nil.
func (s *Server) attachable(id, instance, device string) *fault {
	v, f := s.volume(id)
	if f != nil {
		return f
	}
	i := s.instances[instance]
	switch {
	case i == nil:
		return faultf("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", instance)
	case i.Unfit:
		return faultf("InvalidParameterValue", "Invalid value '%s' for instanceId. The instance does not support the volume",
			instance)
	case v.state != "available" && v.state != "in-use":
		return faultf("IncorrectState", "Volume '%s' is in the '%s' state.", id, v.state)
	case v.zone != i.Zone:
		return faultf("InvalidVolume.ZoneMismatch", "The volume '%s' is not in the same availability zone as instance '%s'",
			id, instance)
	case len(v.attachments) > 0 && !v.multi:
		return faultf("VolumeInUse", "%s is already attached to an instance", id)
	case slices.ContainsFunc(v.attachments, func(a attachment) bool { return a.instance == instance }):
		return faultf("VolumeInUse", "%s is already attached to %s", id, instance)
	case len(v.attachments) >= mostShared:
		return faultf("AttachmentLimitExceeded", "%s is attached to %d instances", id, mostShared)
	}
	if slices.Contains(s.devices(instance), device) {
		// The real API has no separate code for this either.
		return faultf("InvalidParameterValue", "Invalid value '%s' for unixDevice. Attachment point %s is already in use",
			device, device)
	}
	if kind := s.config.Types[i.Type]; s.full(i) && !kind.Lenient {
		return faultf("AttachmentLimitExceeded", "Volume attachment limit of %d exceeded for instance %s",
			kind.MaxAttachments, instance)
	}
	return nil
}

// full reports whether an instance has no room for another volume.
func (s *Server) full(i *Instance) bool {
	kind, used := s.config.Types[i.Type], len(s.devices(i.ID))
	if kind.Shared {
		used += max(i.Interfaces-1, 0) // The limit leaves room for the primary interface already.
	}
	return used >= kind.MaxAttachments
}

// devices returns the names of all disks of an instance.
func (s *Server) devices(instance string) (devices []string) {
	for _, v := range s.volumes.all() {
		for _, a := range v.attachments {
			if a.instance == instance {
				devices = append(devices, a.device)
			}
		}
	}
	return devices
}

// finishAttach completes an attachment if the volume still has it.
func (s *Server) finishAttach(id string, begun attachment) {
	v := s.volumes.now(id)
	if v == nil {
		return
	}
	i := slices.Index(v.attachments, begun)
	if i < 0 {
		return
	}
	s.change(id, func(v *volume) { v.attachments[i].state = "attached" })
	if s.config.Plugged != nil {
		s.config.Plugged(begun.instance, id, v.size)
	}
}

func (v *volume) attached(instance string) int {
	return slices.IndexFunc(v.attachments, func(a attachment) bool { return a.instance == instance })
}

func (s *Server) detachVolume(p *params) effect {
	id, instance := p.id("VolumeId", "vol"), p.text("InstanceId")
	if instance != "" {
		p.blame(malformed("i", instance))
	}
	device, _ := p.text("Device"), p.boolean("Force")
	return func() (any, *fault) {
		v, f := s.volume(id)
		if f != nil {
			return nil, f
		}
		if instance == "" && len(v.attachments) > 1 {
			return nil, faultf("InvalidParameterCombination", "Volume %s is attached to several instances: name one", id)
		}
		i := 0
		if instance != "" {
			i = v.attached(instance)
		}
		switch {
		case instance != "" && !s.launched(instance):
			return nil, faultf("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", instance)
		case len(v.attachments) == 0:
			return nil, faultf("IncorrectState", "Volume '%s' is in the '%s' state.", id, v.state)
		case i < 0 || device != "" && device != v.attachments[i].device:
			return nil, faultf("InvalidAttachment.NotFound", "The volume '%s' is not attached to instance '%s' as device '%s'",
				id, instance, device)
		case v.attachments[i].state == "detaching" || v.attachments[i].state == "busy":
			// The volume is still in use, and IncorrectState is for volumes that are not ("Error codes for the Amazon EC2 API").
			return attachResponse{XMLName: name("DetachVolume"), attachmentXML: v.attachments[i].xml(id)}, nil
		}
		return s.beginDetach(id, v.attachments[i].instance), nil
	}
}

// beginDetach begins a detachment. It is stuck in the state busy while the instance uses the volume (DetachVolume in
// the API reference, of a volume that was not unmounted).
func (s *Server) beginDetach(id, instance string) any {
	state := "detaching"
	if s.used[id] {
		state = "busy"
	}
	s.change(id, func(v *volume) { v.attachments[v.attached(instance)].state = state })
	if !s.used[id] {
		s.endDetach(id, instance)
	}
	v := s.volumes.now(id)
	return attachResponse{XMLName: name("DetachVolume"), attachmentXML: v.attachments[v.attached(instance)].xml(id)}
}

// endDetach ends a detachment after a while.
func (s *Server) endDetach(id, instance string) {
	if s.config.Unplugged != nil {
		s.config.Unplugged(instance, id)
	}
	s.after(s.config.Detach, "detaching", func() {
		s.change(id, func(v *volume) {
			i := v.attached(instance)
			v.attachments = slices.Delete(v.attachments, i, i+1)
			if len(v.attachments) == 0 {
				v.state = "available"
			}
		})
	})
}
