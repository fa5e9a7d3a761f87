package ec2

import "encoding/xml"

// check is the result of EC2's checks of a volume. The zero value is that of a healthy volume.
type check struct{ name, status, event string }

// Impair makes the volume fail a check, for example io-enabled with failed, and report an event.
func (s *Server) Impair(id, name, status, event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checks[id] = check{name, status, event}
}

type statusResponse struct {
	XMLName  xml.Name    `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeVolumeStatusResponse"`
	Next     string      `xml:"nextToken,omitempty"`
	Statuses []statusXML `xml:"volumeStatusSet>item,omitempty"`
}

type statusXML struct {
	Volume  string      `xml:"volumeId"`
	Zone    string      `xml:"availabilityZone"`
	Status  string      `xml:"volumeStatus>status"`
	Details []detailXML `xml:"volumeStatus>details>item"`
	Events  []eventXML  `xml:"eventsSet>item,omitempty"`
}

type detailXML struct {
	Name   string `xml:"name"`
	Status string `xml:"status"`
}

type eventXML struct {
	ID          string `xml:"eventId"`
	Type        string `xml:"eventType"`
	Description string `xml:"description"`
}

func (s *Server) describeStatus(p *params) effect {
	q := s.query(p, "vol", "VolumeId", "volume-status.status", "availability-zone")
	return func() (any, *fault) {
		var response statusResponse
		next, f := page(s, q, s.volumes, func(v *volume) (filterable, bool) {
			return filterable{fields: map[string][]string{"volume-status.status": {s.status(v).Status},
				"availability-zone": {v.zone}}}, true
		}, func(v *volume) { response.Statuses = append(response.Statuses, s.status(v)) })
		response.Next = next
		return response, f
	}
}

// status returns the results of a volume's checks. There are none while it is being created.
func (s *Server) status(v *volume) statusXML {
	x := statusXML{Volume: v.id, Zone: v.zone, Status: "ok",
		Details: []detailXML{{"io-enabled", "passed"}, {"io-performance", "not-applicable"}}}
	if v.state == "creating" {
		x.Status, x.Details[0].Status = "insufficient-data", "insufficient-data"
	}
	c, ok := s.checks[v.id]
	if !ok {
		return x
	}
	x.Status = "impaired"
	for i := range x.Details {
		if x.Details[i].Name == c.name {
			x.Details[i].Status = c.status
		}
	}
	if c.event != "" {
		x.Events = []eventXML{{"evol-" + v.id, c.event, "the volume needs attention"}}
	}
	return x
}
