package ec2

import (
	"maps"
	"slices"
)

func (s *Server) describeInstances(p *params) effect {
	ids := p.list("InstanceId")
	for _, id := range ids {
		p.blame(malformed("i", id))
	}
	return func() (any, *fault) {
		var response instancesResponse
		if len(ids) == 0 {
			ids = slices.Sorted(maps.Keys(s.instances))
		}
		for _, id := range ids {
			i, ok := s.instances[id]
			if !ok {
				return nil, faultf("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
			}
			response.Instances = append(response.Instances, s.instanceXML(i))
		}
		return response, nil
	}
}

// instanceXML shows an instance, with its disks as they were Config.Lag ago.
func (s *Server) instanceXML(i *Instance) instanceXML {
	x := instanceXML{ID: i.ID, Type: i.Type, Zone: i.Zone, Code: 16, State: "running"}
	for range i.Interfaces {
		x.Interfaces = append(x.Interfaces, interfaceXML{ID: s.newID("eni")})
	}
	at := s.shownAt()
	s.showPower(&x, at)
	for _, id := range s.volumes.order {
		v := s.volumes.then(id, at)
		if v == nil {
			continue
		}
		if n := v.attached(i.ID); n >= 0 {
			a := v.attachments[n]
			x.Disks = append(x.Disks, diskXML{Device: a.device, Volume: id, State: a.state, Ephemeral: v.ephemeral})
		}
	}
	return x
}

func (s *Server) describeTypes(p *params) effect {
	names := p.list("InstanceType")
	return func() (any, *fault) {
		var response typesResponse
		for _, name := range names {
			kind, ok := s.config.Types[name]
			if !ok {
				return nil, faultf("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", name)
			}
			x := typeXML{Name: name, Max: kind.MaxAttachments, Limit: "dedicated"}
			if kind.Shared {
				x.Limit = "shared"
			}
			response.Types = append(response.Types, x)
		}
		return response, nil
	}
}

func (s *Server) describeZones(*params) effect {
	return func() (any, *fault) {
		var response zonesResponse
		for _, zone := range s.config.Zones {
			response.Zones = append(response.Zones, zoneXML{Name: zone, State: "available", Type: "availability-zone"})
		}
		return response, nil
	}
}
