package backends

import (
	"regexp"
	"slices"
)

// Topology is a place: segments such as a zone or a node, by key.
type Topology map[string]string

// Check refuses segments that cannot be labels of a node, because the kubelet turns them into labels. Kinds: Invalid.
func (t Topology) Check() error {
	const word = `[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?`
	key, value := regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?`+word+`$`),
		regexp.MustCompile(`^`+word+`$`)
	for k, v := range t {
		if !key.MatchString(k) || !value.MatchString(v) {
			return Errorf(Invalid,
				"topology has %q: %q: use a key and a value that a node's label can have, such as topology.kubernetes.io/zone: a",
				k, v)
		}
	}
	return nil
}

// Within reports whether every segment of place has the same value in t.
func (t Topology) Within(place Topology) bool {
	for key, value := range place {
		if t[key] != value {
			return false
		}
	}
	return true
}

// Agrees reports whether no segment of place has another value in t. A segment that only one of them has does not
// count, because they may be the same place.
func (t Topology) Agrees(place Topology) bool {
	for key, value := range place {
		if own, has := t[key]; has && own != value {
			return false
		}
	}
	return true
}

// TopologyRequirement says where a volume must be reachable from (CSI's TopologyRequirement).
type TopologyRequirement struct {
	Requisite []Topology // in one of these, unless empty
	Preferred []Topology // the earlier the better
}

// Allows reports whether a volume in the place meets the requirement. A place without a segment for a key covers all
// values of the key.
func (r TopologyRequirement) Allows(place Topology) bool {
	return len(r.Requisite) == 0 || slices.ContainsFunc(r.Requisite, place.Agrees)
}

// IsOnly reports whether only volumes in the place meet the requirement.
func (r TopologyRequirement) IsOnly(place Topology) bool {
	isElsewhere := func(one Topology) bool { return !one.Within(place) }
	return len(r.Requisite) > 0 && !slices.ContainsFunc(r.Requisite, isElsewhere)
}

// CapacityQuery describes the volumes whose capacity is requested.
type CapacityQuery struct {
	Parameters any    // as in Spec
	Access     Access // the zero value for any
	Topology   Topology
}

// Capacity says how much more can be provisioned, in bytes.
type Capacity struct {
	AvailableBytes int64
	LargestBytes   int64 // the largest single volume; 0 if it is unknown
	SmallestBytes  int64 // the smallest single volume; 0 for no bound
}

// Pool is a pool that volumes are taken from.
type Pool struct {
	Name string
	Type string // the type of its volumes, in the backend's own word
	Capacity
	Problem string // why it cannot be used now, as a sentence; empty if it can
}

// HealthStatus classifies a problem of a volume (CSI 1.13, VolumeHealthErrorType).
type HealthStatus string

// The statuses of a volume with problems.
const (
	Degraded     HealthStatus = "DEGRADED"     // usable, but not as it should be
	Inaccessible HealthStatus = "INACCESSIBLE" // not usable
	DataLoss     HealthStatus = "DATA_LOSS"    // data is lost, or very likely so
)

// HealthIssue is one problem of a volume.
type HealthIssue struct {
	Status  HealthStatus
	Reason  string // one CamelCase word for machines
	Message string // a sentence for a person
}

// VolumeHealth is a volume with problems.
type VolumeHealth struct {
	Handle string
	Issues []HealthIssue
}

// StorageIssue is one problem of the storage as seen from a node.
type StorageIssue struct {
	Unreachable bool   // unreachable rather than merely degraded
	Reason      string // one CamelCase word for machines
	Message     string // a sentence for a person
}
