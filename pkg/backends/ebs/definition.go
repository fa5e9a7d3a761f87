package ebs

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/metadata"
	"github.com/stowage-csi/stowage/pkg/cloud/pace"
)

// Config is the backend's configuration.
type Config struct {
	// AWS has EC2's address and the credentials. With the zero value the SDK finds them by itself: AWS_REGION,
	// AWS_ENDPOINT_URL, the chain of credentials, the instance's metadata.
	AWS aws.Config `json:"-"`
	// ClusterID distinguishes volumes of this cluster from those of other clusters in the same account: only they are
	// listed and changed. It is the value of a tag. If empty, Kubernetes' ID of the cluster is used.
	ClusterID string `json:"clusterID"`
	// ExtraTags are added to everything that the driver creates.
	ExtraTags map[string]string `json:"extraTags"`
	// VolumeAttachLimit is how many attachments nodes allow; 0 for EC2's limit of their type. Set it for nodes that may
	// not ask EC2.
	VolumeAttachLimit int `json:"volumeAttachLimit"`
	// ReservedAttachments are kept free on every node.
	ReservedAttachments int `json:"reservedAttachments"`
	// Rates are the rate limits of actions that change something, by their names in EC2's API, if the account's limits
	// differ from the usual ones.
	Rates map[string]pace.Limit `json:"rates"`
	// Timing is not for users.
	Timing Timing `json:"-"`
	// SysBlock is the directory in which the kernel shows block devices. NewConfig sets it to /sys/block.
	SysBlock string `json:"-"`
	// LogPage reads the statistics from the disk with the serial number, if it is not nil. It is not for users.
	LogPage func(device, serial string) ([]byte, error) `json:"-"`
}

// Timing adapts the backend to EC2's pace.
type Timing struct {
	Call        time.Duration // bounds one request that changes something
	Read        time.Duration // bounds one read: others wait for it to end
	Settle      time.Duration // how long EC2 may take to show a change
	Gather      time.Duration // how long a modification waits for others of the same volume
	Tick        time.Duration // the resolution of the times that tell EC2's attachments of a volume apart
	Least, Most time.Duration // between two looks at an awaited thing
	Near        time.Duration // bounds a request to the metadata service; 0 for metadata.Near
}

// defaultTiming is for the real EC2, which guarantees nothing: its eventual consistency is said to take seconds, in
// rare cases minutes.
func defaultTiming() Timing {
	return Timing{Call: 30 * time.Second, Read: 10 * time.Second, Settle: 2 * time.Minute, Gather: time.Second,
		Tick: time.Second, Least: 10 * time.Millisecond, Most: 10 * time.Second}
}

// Definition describes the backend.
func Definition() backends.Definition {
	return backends.Definition{
		Name:                  "ebs",
		Summary:               "Amazon EBS volumes, attached to EC2 instances",
		NewParameters:         func() any { return new(Parameters) },
		NewMutable:            func() any { return new(Mutable) },
		NewSnapshotParameters: func() any { return new(SnapshotParameters) },
		NewConfig:             func() any { return &Config{Timing: defaultTiming(), SysBlock: "/sys/block"} },
		FindsNode:             true,
		ListsOwn:              true,
		Open:                  open,
	}
}

func open(ctx context.Context, options backends.Options) (*backends.Instance, error) {
	config, ok := options.Config.(*Config)
	if !ok {
		return nil, backends.Errorf(backends.Invalid, "the configuration is a %T: give what NewConfig returns",
			options.Config)
	}
	if options.NodeID != "" && !isID("i", options.NodeID) {
		return nil, backends.Errorf(backends.Invalid,
			"the node ID %q is not that of an EC2 instance, such as i-0123456789abcdef0", options.NodeID)
	}
	if err := config.load(ctx, options.Node != nil); err != nil {
		return nil, err
	}
	imds := newService(config.AWS, cmp.Or(config.Timing.Near, metadata.Near))
	self, err := identify(ctx, imds, options)
	if err != nil {
		return nil, err
	}
	config.AWS.Region = cmp.Or(config.AWS.Region, self.Region)
	if err := config.check(); err != nil {
		return nil, err
	}
	if err := config.identifyCluster(ctx, options); err != nil {
		return nil, err
	}
	b := newBackend(options.Driver, *config, options.Log)
	n := newNode(b, self, imds)
	instance := &backends.Instance{Controller: b, Node: n, NodeID: self.ID}
	if options.NodeOnly {
		instance.Node = lone{n, b.sent}
	}
	return instance, nil
}

// load reads the SDK's configuration unless it is set. The region of a node is found out together with its instance.
func (c *Config) load(ctx context.Context, isNode bool) error {
	if c.AWS.Region != "" || c.AWS.Credentials != nil {
		return nil
	}
	var more []func(*awsconfig.LoadOptions) error
	if !isNode {
		more = append(more, awsconfig.WithEC2IMDSRegion())
	}
	found, err := awsconfig.LoadDefaultConfig(ctx, more...)
	if err != nil {
		return backends.Errorf(backends.Invalid, "the configuration of the AWS SDK cannot be read: %w", err)
	}
	c.AWS = found
	return nil
}

func (c *Config) check() error {
	switch {
	case c.AWS.Region == "" || c.AWS.Credentials == nil:
		return backends.Errorf(backends.Invalid,
			"the AWS region or credentials are missing: set AWS_REGION and give the pod a role")
	case !positive(c.Rates):
		return backends.Errorf(backends.Invalid, "rates is %v: burst and perSecond must be above 0", c.Rates)
	case c.ReservedAttachments < 0 || c.VolumeAttachLimit < 0:
		return backends.Errorf(backends.Invalid,
			"reservedAttachments is %d and volumeAttachLimit %d: they must be at least 0",
			c.ReservedAttachments, c.VolumeAttachLimit)
	}
	return nil
}

func positive(rates map[string]pace.Limit) bool {
	for _, limit := range rates {
		if limit.Burst <= 0 || limit.PerSecond <= 0 {
			return false
		}
	}
	return true
}

// isID reports whether a text has the form of EC2's IDs with the prefix. No other text may reach EC2 as an ID.
func isID(prefix, text string) bool {
	const old, now = 8, 17 // digits
	digits, ok := strings.CutPrefix(text, prefix+"-")
	return ok && (len(digits) == old || len(digits) == now) && only("0123456789abcdef", digits)
}
