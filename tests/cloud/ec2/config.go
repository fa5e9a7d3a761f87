package ec2

import "time"

// Config says how the cloud behaves.
type Config struct {
	Zones []string
	// How long transitions take.
	Create, Delete, Attach, Detach, Modify, Optimize, Snapshot time.Duration
	// Lag is how old what the Describe actions show is.
	Lag time.Duration
	// Unsteady lets reads go back in time: each request is answered as of another instant, up to Lag ago.
	Unsteady bool
	// Spread is for how long what was made is not known to the requests that change it: "its ID might not have propagated
	// throughout the system", so that EC2 says that there is no such thing ("Eventual consistency in the Amazon EC2 API",
	// Amazon EC2 Developer Guide). Whether reads show it is another matter: see Lag.
	Spread time.Duration
	// Cooldown is the least time between the beginnings of two modifications of one volume.
	Cooldown time.Duration
	// SnapshotInterval is the least time between two snapshots of one volume.
	SnapshotInterval time.Duration
	// TokenLife is for how long a client token is remembered; 0 for ever.
	TokenLife time.Duration
	// Troubles befall the cloud at random.
	Troubles Troubles
	// MaxVolumes and MaxGiB are quotas; 0 for none.
	MaxVolumes, MaxGiB int
	// MaxSnapshots is how many snapshots there may be; 0 for any number.
	MaxSnapshots int
	// MaxIOPS is the quota of provisioned operations per second; 0 for none.
	MaxIOPS int
	// MaxFastRestores is how many snapshots can have fast restore, counted in each zone; 0 for none.
	MaxFastRestores int
	// Buckets bound how often an action may be asked for; "" is for all that have none of their own.
	Buckets map[string]Bucket
	// Types are the instance types, by name.
	Types map[string]InstanceType
	// Plugged and Resized are told when an instance gets a disk and when one of its disks has grown, and Unplugged when
	// it is to lose one. They run under the server's lock.
	Plugged, Resized func(instance, volume string, gib int)
	Unplugged        func(instance, volume string)
}

// Bucket is a token bucket: so many requests at once, and so many a second.
type Bucket struct{ Size, PerSecond float64 }

// InstanceType is what DescribeInstanceTypes tells of a type.
type InstanceType struct {
	MaxAttachments int
	Shared         bool // network interfaces count as attachments
}

// Instance is a machine.
type Instance struct {
	ID, Type, Zone string
	Interfaces     int // network interfaces
	Tags           map[string]string
}

// bucket is a Bucket in use.
type bucket struct {
	Bucket
	left float64
	at   time.Time
}

// take takes one token, if there is one.
func (b *bucket) take(now time.Time) bool {
	b.left = min(b.Size, b.left+now.Sub(b.at).Seconds()*b.PerSecond)
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// throttled reports whether the action has been asked for too often.
func (s *Server) throttled(action string) bool {
	limit, ok := s.config.Buckets[action]
	if !ok {
		action = ""
		if limit, ok = s.config.Buckets[""]; !ok {
			return false
		}
	}
	b, ok := s.buckets[action]
	if !ok {
		b = &bucket{limit, limit.Size, time.Now()}
		s.buckets[action] = b
	}
	return !b.take(time.Now())
}
