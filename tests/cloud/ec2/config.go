package ec2

import "time"

// Config describes the behaviour of the cloud.
type Config struct {
	Zones []string
	// The durations of transitions.
	Create, Delete, Attach, Detach, Modify, Optimize, Snapshot time.Duration
	// Lag is the age of the data that the Describe actions show.
	Lag time.Duration
	// Unsteady lets reads go back in time: each request is answered as of a random instant, up to Lag ago.
	Unsteady bool
	// Spread is the time during which a new resource is unknown to requests that change it: "its ID might not have
	// propagated throughout the system", so that EC2 reports that it does not exist ("Eventual consistency in the Amazon
	// EC2 API", Amazon EC2 Developer Guide). Whether reads show it depends on Lag.
	Spread time.Duration
	// Scattered makes the first page of each enumeration empty, with a token, and gives the results of a page in random
	// order. A page may have fewer results than asked for, even none, and a token ("Pagination", Amazon EC2 Developer
	// Guide), and the order of the results may vary (DescribeVolumes in the API reference).
	Scattered bool
	// Cooldown is the minimum time between the starts of two modifications of one volume.
	Cooldown time.Duration
	// SnapshotInterval is the minimum time between two snapshots of one volume.
	SnapshotInterval time.Duration
	// TokenLife is the time for which a client token is remembered; 0 for ever.
	TokenLife time.Duration
	// DeadTokens makes the token of a volume that has vanished answer IdempotentParameterMismatch, as EC2 has been seen to
	// do (kubernetes-sigs/aws-ebs-csi-driver, issue 3010). Without it, such a token answers with the volume.
	DeadTokens bool
	// Troubles are random failures of the cloud itself.
	Troubles Troubles
	// MaxVolumes and MaxGiB are quotas; 0 for none.
	MaxVolumes, MaxGiB int
	// MaxSnapshots is the maximum number of snapshots; 0 for no limit.
	MaxSnapshots int
	// MaxIOPS is the quota of provisioned operations per second; 0 for none.
	MaxIOPS int
	// MaxFastRestores is the maximum number of snapshots with fast restore, counted in each zone; 0 for none.
	MaxFastRestores int
	// Buckets limit the rate of actions; "" applies to all actions without their own bucket.
	Buckets map[string]Bucket
	// Types are the instance types, by name.
	Types map[string]InstanceType
	// Plugged and Resized are called when an instance gets a disk and when one of its disks has grown, and Unplugged when
	// it is to lose one. They run under the server's lock.
	Plugged, Resized func(instance, volume string, gib int)
	Unplugged        func(instance, volume string)
}

// Bucket is a token bucket: its size is the burst, in requests.
type Bucket struct{ Size, PerSecond float64 }

// InstanceType holds the properties of a type that DescribeInstanceTypes returns.
type InstanceType struct {
	MaxAttachments int
	// Shared makes network interfaces take attachments, except the primary one, which the limit already leaves out: 27 for
	// a type that has 28 in all ("Amazon EBS volume limits for Amazon EC2 instances"; the limits of all types in
	// pkg/cloud/limits of aws-ebs-csi-driver, which come from DescribeInstanceTypes). It leaves out the disks and
	// accelerators of the type as well.
	Shared bool
	// Lenient makes EC2 accept a volume for which an instance has no room. The volume then stays in the state attaching
	// (kubernetes-sigs/aws-ebs-csi-driver, issues 1163, 1688 and 2064).
	Lenient bool
}

// Instance is a machine.
type Instance struct {
	ID, Type, Zone string
	Interfaces     int // network interfaces
	Tags           map[string]string
	// Unfit makes EC2 refuse all its attachments with a code that does not say why: a value "is not valid, is unsupported,
	// or cannot be used" ("Error codes for the Amazon EC2 API", InvalidParameterValue).
	Unfit bool
}

// bucket is a Bucket in use.
type bucket struct {
	Bucket
	left float64
	at   time.Time
}

// take takes one token, and reports whether there was one.
func (b *bucket) take(now time.Time) bool {
	b.left = min(b.Size, b.left+now.Sub(b.at).Seconds()*b.PerSecond)
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// throttled reports whether the action exceeds its rate.
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
