package ec2

import (
	"encoding/xml"
	"slices"
	"time"
)

type fastResponse struct {
	XMLName      xml.Name
	Next         string       `xml:"nextToken,omitempty"`
	Have         []fastXML    `xml:"fastSnapshotRestoreSet>item,omitempty"`
	Successful   []fastXML    `xml:"successful>item,omitempty"`
	Unsuccessful []notFastXML `xml:"unsuccessful>item,omitempty"`
}

type fastXML struct {
	Snapshot string `xml:"snapshotId"`
	Zone     string `xml:"availabilityZone"`
	State    string `xml:"state"`
}

type notFastXML struct {
	Snapshot string         `xml:"snapshotId"`
	Errors   []fastErrorXML `xml:"fastSnapshotRestoreStateErrorSet>item"`
}

type fastErrorXML struct {
	Zone    string `xml:"availabilityZone"`
	Code    string `xml:"error>code"`
	Message string `xml:"error>message"`
}

func (s *Server) enableFastRestores(p *params) effect {
	zones, ids := p.list("AvailabilityZone"), p.list("SourceSnapshotId")
	if len(zones) == 0 || len(ids) == 0 {
		p.blame(faultf("MissingParameter", "The request must contain AvailabilityZone and SourceSnapshotId"))
	}
	for _, id := range ids {
		p.blame(malformed("snap", id))
	}
	return func() (any, *fault) {
		response := fastResponse{XMLName: name("EnableFastSnapshotRestores")}
		for _, id := range ids {
			if _, f := s.snapshot(id); f != nil {
				return nil, f
			}
			for _, zone := range zones {
				switch {
				case !slices.Contains(s.config.Zones, zone):
					return nil, faultf("InvalidParameterValue", "The zone '%s' does not exist", zone)
				case s.fastIn(zone) >= s.config.MaxFastRestores:
					failure := fastErrorXML{zone, "FastSnapshotRestoreLimitExceeded",
						"You have reached your limit of fast snapshot restores"}
					response.Unsuccessful = append(response.Unsuccessful, notFastXML{id, []fastErrorXML{failure}})
				default:
					s.changeSnapshot(id, func(n *snapshot) { n.fast = append(slices.Clone(n.fast), zone) })
					response.Successful = append(response.Successful, fastXML{id, zone, "enabling"})
				}
			}
		}
		return response, nil
	}
}

// fastIn counts the snapshots with fast restore in a zone.
func (s *Server) fastIn(zone string) (n int) {
	for _, other := range s.snapshots.all() {
		if slices.Contains(other.fast, zone) {
			n++
		}
	}
	return n
}

func (s *Server) describeFastRestores(p *params) effect {
	q := s.query(p, "snap", "-", "snapshot-id", "availability-zone", "state", "owner-id")
	return func() (any, *fault) {
		response := fastResponse{XMLName: name("DescribeFastSnapshotRestores")}
		next, f := page(s, q, s.snapshots, func(n *snapshot) (filterable, bool) {
			return filterable{fields: map[string][]string{"snapshot-id": {n.id}, "availability-zone": n.fast}}, len(n.fast) > 0
		}, func(n *snapshot) {
			for _, zone := range n.fast {
				response.Have = append(response.Have, fastXML{n.id, zone, "enabled"})
			}
		})
		response.Next = next
		return response, f
	}
}

type lockResponse struct {
	XMLName xml.Name
	lockXML
}

type lockedResponse struct {
	XMLName   xml.Name
	Next      string    `xml:"nextToken,omitempty"`
	Snapshots []lockXML `xml:"snapshotSet>item,omitempty"`
}

type lockXML struct {
	Snapshot string `xml:"snapshotId"`
	State    string `xml:"lockState"`
	Days     int    `xml:"lockDuration,omitempty"`
	Expires  string `xml:"lockExpiresOn"`
}

func (s *Server) lockSnapshot(p *params) effect {
	id, mode, days, coolOff, date := p.id("SnapshotId", "snap"), p.required("LockMode"), p.integer("LockDuration"),
		p.integer("CoolOffPeriod"), p.text("ExpirationDate")
	until, err := time.Parse(time.RFC3339, date)
	switch {
	case mode != "governance" && mode != "compliance":
		p.blame(faultf("InvalidParameterValue", "The lock mode '%s' is invalid", mode))
	case (days == 0) == (date == ""), date != "" && err != nil, days < 0 || days > 36500:
		p.blame(faultf("InvalidParameterCombination", "Specify either LockDuration, from 1 to 36500, or ExpirationDate"))
	case coolOff != 0 && mode != "compliance", coolOff < 0 || coolOff > 72:
		p.blame(faultf("InvalidParameterCombination", "CoolOffPeriod is from 1 to 72, and for compliance mode only"))
	}
	return func() (any, *fault) {
		n, f := s.snapshot(id)
		switch {
		case f != nil:
			return nil, f
		case n.lock.mode == "compliance" && n.lock.until.After(s.now):
			return nil, faultf("OperationNotPermitted", "The snapshot '%s' is locked in compliance mode.", id)
		}
		if days > 0 {
			until = s.now.AddDate(0, 0, days)
		}
		s.changeSnapshot(id, func(n *snapshot) {
			n.lock = lock{mode: mode, since: s.now, until: until, days: days, coolOff: coolOff}
		})
		return lockResponse{name("LockSnapshot"), s.lockOf(s.snapshots.now(id))}, nil
	}
}

func (s *Server) describeLocked(p *params) effect {
	q := s.query(p, "snap", "SnapshotId", "lock-state")
	return func() (any, *fault) {
		response := lockedResponse{XMLName: name("DescribeLockedSnapshots")}
		next, f := page(s, q, s.snapshots, func(n *snapshot) (filterable, bool) {
			return filterable{fields: map[string][]string{"lock-state": {s.lockOf(n).State}}}, n.lock.mode != ""
		}, func(n *snapshot) { response.Snapshots = append(response.Snapshots, s.lockOf(n)) })
		response.Next = next
		return response, f
	}
}

func (s *Server) lockOf(n *snapshot) lockXML {
	x := lockXML{Snapshot: n.id, State: n.lock.mode, Days: n.lock.days, Expires: stamp(n.lock.until)}
	switch {
	case !n.lock.until.After(s.now):
		x.State = "expired"
	case s.now.Sub(n.lock.since) < time.Duration(n.lock.coolOff)*time.Hour:
		x.State = "compliance-cooloff"
	}
	return x
}
