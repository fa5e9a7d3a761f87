package ec2

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// volume is a version of a volume. A version in the store is never changed: see change.
type volume struct {
	shape
	id, zone, state  string
	encrypted        bool
	key              string // KMS
	snapshot, source string // the origin
	created          time.Time
	tags             map[string]string
	attachments      []attachment
	modification     *modification
	content          string // the written data
	ephemeral        bool   // it is deleted with its instance
}

type attachment struct {
	instance, device, state string
	at                      time.Time
}

// change creates a new version of a volume.
func (s *Server) change(id string, edit func(v *volume)) {
	v := *s.volumes.now(id)
	v.tags, v.attachments = maps.Clone(v.tags), slices.Clone(v.attachments)
	if v.modification != nil {
		m := *v.modification
		v.modification = &m
	}
	edit(&v)
	s.volumes.put(id, s.now, &v)
}

// volume returns a volume that exists and is known everywhere.
func (s *Server) volume(id string) (*volume, *fault) {
	if v := s.volumes.now(id); v != nil && s.spread(v.created) {
		return v, nil
	}
	return nil, faultf("InvalidVolume.NotFound", "The volume '%s' does not exist.", id)
}

// spread reports whether a resource created at that time is known everywhere.
func (s *Server) spread(made time.Time) bool { return s.now.Sub(made) >= s.config.Spread }

func (s *Server) createVolume(p *params) effect {
	v := volume{
		shape: readShape(p), zone: p.required("AvailabilityZone"), encrypted: p.boolean("Encrypted"), key: p.text("KmsKeyId"),
		tags: p.tagsFor("volume"),
	}
	token := p.text("ClientToken")
	if p.has("SnapshotId") {
		v.snapshot = p.id("SnapshotId", "snap")
	} else if v.size == 0 {
		p.blame(faultf("MissingParameter", "The request must contain the parameter size or snapshotId"))
	}
	if v.key != "" && !v.encrypted {
		p.blame(faultf("InvalidParameterDependency", "The parameter KmsKeyId requires the parameter Encrypted to be set."))
	}
	return func() (any, *fault) {
		made, f := s.once(token, p, func() (string, *fault) { return s.makeVolume(v) })
		if f != nil {
			return nil, f
		}
		return createVolumeResponse{volumeXML: made.xml(false)}, nil
	}
}

func readShape(p *params) shape {
	return shape{
		kind: p.text("VolumeType"), size: p.integer("Size"), iops: p.integer("Iops"), throughput: p.integer("Throughput"),
		multi: p.boolean("MultiAttachEnabled"),
	}
}

// makeVolume makes the checks that depend on the cloud's state, and creates a volume.
func (s *Server) makeVolume(v volume) (id string, f *fault) {
	if !slices.Contains(s.config.Zones, v.zone) {
		return "", faultf("InvalidZone.NotFound", "The zone '%s' does not exist.", v.zone)
	}
	if v.snapshot != "" {
		from, f := s.usable(v.snapshot)
		if f != nil {
			return "", f
		}
		if v.size == 0 {
			v.size = from.size
		}
		if v.size < from.size {
			return "", faultf("InvalidParameterValue", "The size %d is smaller than the snapshot's, %d", v.size, from.size)
		}
		v.content, v.encrypted = from.content, v.encrypted || from.encrypted
	}
	return s.begin(v)
}

// begin creates a volume that becomes available after a while.
func (s *Server) begin(v volume) (id string, f *fault) {
	v.complete()
	if f := v.check(); f != nil {
		return "", f
	}
	if f := s.quota(v.size); f != nil {
		return "", f
	}
	v.id, v.state, v.created = s.newID("vol"), "creating", s.now
	s.volumes.put(v.id, s.now, &v)
	end := "available"
	if s.doomed > 0 {
		s.doomed--
		end = "error"
	} else if s.troubled(s.config.Troubles.Doomed) {
		end = "error"
	}
	s.after(s.config.Create, "creating", func() { s.endCreation(v.id, end) })
	return v.id, nil
}

// endCreation ends the creation of a volume in a state. EC2 checks the KMS key only after its answer, so that "the
// action can appear to complete, but eventually fails" (CreateVolume in the API reference, KmsKeyId). The volume is
// then gone, without a state (kubernetes-sigs/aws-ebs-csi-driver, issues 1140 and 3010).
func (s *Server) endCreation(id, state string) {
	if s.broken[s.volumes.now(id).key] {
		s.vanished[id] = true
		s.volumes.put(id, s.now, nil)
		return
	}
	s.change(id, func(v *volume) { v.state = state })
}

func (s *Server) quota(more int) *fault {
	total := more
	volumes := s.volumes.all()
	for _, v := range volumes {
		total += v.size
	}
	switch {
	case s.config.MaxVolumes > 0 && len(volumes) >= s.config.MaxVolumes:
		return faultf("VolumeLimitExceeded", "You have exceeded the maximum number of active volumes: %d",
			s.config.MaxVolumes)
	case s.config.MaxGiB > 0 && total > s.config.MaxGiB:
		return faultf("VolumeLimitExceeded", "You have exceeded your maximum storage: %d GiB", s.config.MaxGiB)
	}
	return nil
}

func (s *Server) copyVolumes(p *params) effect {
	wanted := volume{shape: readShape(p), encrypted: p.boolean("Encrypted"), key: p.text("KmsKeyId"),
		source: p.id("SourceVolumeId", "vol"), tags: p.tagsFor("volume")}
	token := p.text("ClientToken")
	return func() (any, *fault) {
		made, f := s.once(token, p, func() (string, *fault) { return s.copyVolume(wanted) })
		if f != nil {
			return nil, f
		}
		return copyVolumesResponse{Volumes: []volumeXML{made.xml(false)}}, nil
	}
}

func (s *Server) copyVolume(v volume) (id string, f *fault) {
	from, f := s.volume(v.source)
	switch {
	case f != nil:
		return "", f
	case from.state != "available" && from.state != "in-use":
		return "", faultf("IncorrectState", "The volume '%s' is in state %s", from.id, from.state)
	case v.size != 0 && v.size < from.size:
		return "", faultf("InvalidParameterValue", "The size %d is smaller than the source volume's, %d", v.size, from.size)
	}
	if v.size == 0 {
		v.size = from.size
	}
	v.zone, v.encrypted, v.content = from.zone, v.encrypted || from.encrypted, from.content
	return s.begin(v)
}

func (s *Server) deleteVolume(p *params) effect {
	id := p.id("VolumeId", "vol")
	return func() (any, *fault) {
		v, f := s.volume(id)
		switch {
		case f != nil:
			return nil, f
		case len(v.attachments) > 0:
			return nil, faultf("VolumeInUse", "Volume %s is currently attached to %s", id, v.attachments[0].instance)
		case v.state != "available" && v.state != "error":
			return nil, faultf("IncorrectState", "The volume '%s' is in state %s", id, v.state)
		}
		s.change(id, func(v *volume) { v.state = "deleting" })
		s.after(s.config.Delete, "deleting", func() { s.volumes.put(id, s.now, nil) })
		return done("DeleteVolume"), nil
	}
}

// tokenUse records the resource that was created with a client token, and the parameters.
type tokenUse struct {
	made       string
	parameters string
	at         time.Time
}

// once calls create unless the token was used before. A token outlives its resource, and yields the original answer.
// The account's quotas come first: EC2 refuses a repeated request for a volume that has filled a quota
// (kubernetes-sigs/aws-ebs-csi-driver, issue 2512).
func (s *Server) once(token string, p *params, create func() (string, *fault)) (*volume, *fault) {
	use, known := s.tokens[token]
	if life := s.config.TokenLife; known && life > 0 && s.now.Sub(use.at) > life {
		known = false
	}
	parameters := fmt.Sprint(p.values) // Printed maps are sorted.
	if token == "" {
		return nil, faultf("MissingParameter", "The SDK always sends a client token")
	}
	if f := s.quota(p.integer("Size")); f != nil {
		return nil, f
	}
	switch {
	case known && use.parameters != parameters:
		return nil, faultf("IdempotentParameterMismatch",
			"The client token you have provided is associated with a resource of other parameters.")
	case known && s.config.DeadTokens && s.vanished[use.made]:
		return nil, faultf("IdempotentParameterMismatch",
			"The client token you have provided is associated with a resource that is already deleted.")
	case known:
		return s.volumes.versions[use.made][0].value, nil
	}
	id, f := create()
	if f != nil {
		return nil, f
	}
	s.tokens[token] = tokenUse{id, parameters, s.now}
	return s.volumes.now(id), nil
}
