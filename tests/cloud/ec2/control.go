package ec2

import (
	"maps"
	"slices"
	"time"

	"github.com/stowage-csi/stowage/tests/cloud/history"
)

// The rest is for tests: operations that no client has, and the true state, regardless of the Describe actions.

// AddInstance starts a machine with a root disk that no client manages.
func (s *Server) AddInstance(i Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = time.Now()
	s.instances[i.ID] = &i
	s.powers.put(i.ID, s.now.Add(-s.config.Lag), &power{state: "running", code: 16, launched: s.now})
	root := volume{shape: shape{kind: "gp3", size: 8}, id: s.newID("vol"), zone: i.Zone, state: "in-use", created: s.now,
		tags: map[string]string{}}
	root.complete()
	root.attachments = []attachment{{i.ID, "/dev/sda1", "attached", s.now}}
	s.volumes.put(root.id, s.now.Add(-s.config.Lag), &root)
}

// SetUnfit changes Instance.Unfit.
func (s *Server) SetUnfit(instance string, unfit bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instances[instance].Unfit = unfit
}

// Use makes instances use a volume, as by a mount: it is not detached until Use is called again with false.
func (s *Server) Use(id string, used bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	if s.used[id] = used; used {
		return
	}
	for _, a := range s.volumes.now(id).attachments {
		if a.state == "busy" {
			s.beginDetach(id, a.instance)
		}
	}
}

// Plug attaches a volume to an instance under a device name, as a disk of its image that is deleted with the instance.
func (s *Server) Plug(id, instance, device string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	s.change(id, func(v *volume) {
		v.state, v.attachments = "in-use", append(v.attachments, attachment{instance, device, "attached", s.now})
		v.ephemeral = true
	})
}

// NewInstanceID returns a new ID for AddInstance.
func (s *Server) NewInstanceID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newID("i")
}

// Stick keeps resources in a state, such as attaching, until it is called again with false.
func (s *Server) Stick(state string, stuck bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stuck[state] = stuck
}

// Doom makes the next n volumes end in state error.
func (s *Server) Doom(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doomed = n
}

// BreakKey makes EC2 unable to use a KMS key, as one that is disabled, unknown or forbidden, until it is called again
// with false.
func (s *Server) BreakKey(key string, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken[key] = broken
}

// FailVolume makes the hardware of a volume fail: its data is lost ("error" in "EBS volume lifecycle", EBS User Guide).
func (s *Server) FailVolume(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	s.change(id, func(v *volume) { v.state = "error" })
}

// SetUnsteady changes Config.Unsteady.
func (s *Server) SetUnsteady(unsteady bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config.Unsteady = unsteady
}

// SetLag changes Config.Lag.
func (s *Server) SetLag(lag time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config.Lag = lag
}

// SetQuota changes Config.MaxVolumes, for the volumes beside the disks of instances.
func (s *Server) SetQuota(volumes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config.MaxVolumes = len(s.instances) + volumes
}

// SetSpread changes Config.Spread.
func (s *Server) SetSpread(spread time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config.Spread = spread
}

// Forbid sets a policy that denies the actions, and allows all others.
func (s *Server) Forbid(actions ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.forbidden)
	for _, name := range actions {
		s.forbidden[name] = true
	}
}

// Calls counts the requests for each action.
func (s *Server) Calls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// Throttled counts the requests that were refused because of their rate.
func (s *Server) Throttled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// Protection returns the true zones with fast restore of a snapshot, and the mode and end of its lock.
func (s *Server) Protection(snapshot string) (zones []string, lockMode string, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.snapshots.now(snapshot)
	if n == nil {
		return nil, "", time.Time{}
	}
	return n.fast, n.lock.mode, n.lock.until
}

// Volume is the true state of a volume.
type Volume struct {
	ID, State, Content string
	GiB                int
	IOPS, Throughput   int // operations and MiB a second
	Created            time.Time
	Tags               map[string]string
	Instances          map[string]string // state of the attachment, by instance
}

// Volumes returns all volumes except root disks.
func (s *Server) Volumes() (volumes []Volume) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	for _, v := range s.volumes.all() {
		t := Volume{v.id, v.state, v.content, v.size, v.iops, v.throughput, v.created, maps.Clone(v.tags),
			map[string]string{}}
		root := false
		for _, a := range v.attachments {
			t.Instances[a.instance] = a.state
			root = root || a.device == "/dev/sda1"
		}
		if !root {
			volumes = append(volumes, t)
		}
	}
	return volumes
}

// Past returns all states that volumes ever had, except those of root disks.
func (s *Server) Past() (states []history.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	for _, id := range s.volumes.order {
		versions := s.volumes.versions[id]
		if first := versions[0].value; len(first.attachments) > 0 {
			continue
		}
		for _, version := range versions {
			states = append(states, version.value.seen(id, version.at))
		}
	}
	return states
}

// seen converts a version of a volume to package history's form. A nil volume is gone.
func (v *volume) seen(id string, at time.Time) history.State {
	state := history.State{At: at, Volume: id}
	if v == nil {
		return state
	}
	state.There, state.Usable, state.Shared = v.state != "deleting" && v.state != "error", v.state == "available" ||
		v.state == "in-use", v.multi
	state.Nodes = map[string]string{}
	for _, a := range v.attachments {
		state.Nodes[a.instance] = a.state
	}
	return state
}

// Snapshots returns the IDs of all snapshots, with their tags.
func (s *Server) Snapshots() map[string]map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	all := map[string]map[string]string{}
	for _, n := range s.snapshots.all() {
		all[n.id] = maps.Clone(n.tags)
	}
	return all
}

// FailSnapshot makes a pending snapshot fail.
func (s *Server) FailSnapshot(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	s.changeSnapshot(id, func(n *snapshot) { n.state = "error" })
}

// Recover restores a deleted snapshot unchanged and with its ID, as users of a Recycle Bin do ("Recover deleted EBS
// snapshots and EBS-backed AMIs with Recycle Bin", EBS User Guide).
func (s *Server) Recover(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	for _, version := range slices.Backward(s.snapshots.versions[id]) {
		if version.value != nil {
			s.snapshots.put(id, s.now, version.value)
			return
		}
	}
}

// Write writes content to a volume, as its machine would.
func (s *Server) Write(id, content string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	if s.volumes.now(id) != nil {
		s.change(id, func(v *volume) { v.content = content })
	}
}

// Read returns the content of a volume.
func (s *Server) Read(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.volumes.now(id); v != nil {
		return v.content
	}
	return ""
}
