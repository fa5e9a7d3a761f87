package ebs

import (
	"cmp"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Parameters are the parameters of a StorageClass.
type Parameters struct {
	Type       string `param:"type" enum:"gp2|gp3|io1|io2|st1|sc1|standard" default:"gp3" doc:"Volume type."`
	IOPS       int64  `param:"iops" min:"100" doc:"Provisioned operations per second, for gp3, io1 and io2. A volume whose type and size allow fewer gets the most that they allow."`
	IOPSPerGB  int64  `param:"iopsPerGB" alias:"iopsPerGb|iopspergb" min:"1" doc:"Provisioned operations per second for each GiB of the volume, instead of iops, and within the same limits."`
	AutoIOPS   bool   `param:"allowAutoIOPSPerGBIncrease" alias:"allowautoiopspergbincrease" doc:"With iopsPerGB: give a small volume the least that its type can have instead of refusing it."`
	Throughput int64  `param:"throughput" min:"125" max:"2000" doc:"Provisioned MiB per second, for gp3."`
	Encrypted  *bool  `param:"encrypted" doc:"Whether the volume is encrypted. Without it the account's default holds."`
	KMSKeyID   string `param:"kmsKeyId" alias:"kmskeyid" doc:"KMS key of the volume, which is encrypted then; without it the account's default."`

	// The rest is of aws-ebs-csi-driver, whose classes may say that they do without.
	Ext4Encryption  bool `param:"ext4EncryptionSupport" alias:"ext4encryptionsupport" doc:"Only false: the driver makes no ext4 that encrypts single folders. Use encrypted, which encrypts the whole volume."`
	WaitInitialized bool `param:"blockAttachUntilInitialized" alias:"blockattachuntilinitialized" doc:"Only false: a restored volume is attached at once. Use fastSnapshotRestoreAvailabilityZones in the VolumeSnapshotClass, for volumes that have their full speed at once."`
	Tags
}

// Tags are additional tags for what the driver creates.
type Tags struct {
	Tag1 string `param:"tagSpecification_1" doc:"A tag as key=value. The value may have {{.PVCName}}, {{.PVCNamespace}} and {{.PVName}}."`
	Tag2 string `param:"tagSpecification_2" doc:"As tagSpecification_1."`
	Tag3 string `param:"tagSpecification_3" doc:"As tagSpecification_1."`
	Tag4 string `param:"tagSpecification_4" doc:"As tagSpecification_1."`
	Tag5 string `param:"tagSpecification_5" doc:"As tagSpecification_1."`
	Tag6 string `param:"tagSpecification_6" doc:"As tagSpecification_1."`
	Tag7 string `param:"tagSpecification_7" doc:"As tagSpecification_1."`
	Tag8 string `param:"tagSpecification_8" doc:"As tagSpecification_1."`
	// Named are those whose names are no numbers up to 8.
	Named map[string]string `param:"tagSpecification_*" doc:"As tagSpecification_1, with any other name in place of the number."`
}

// Mutable are the parameters of a VolumeAttributesClass.
type Mutable struct {
	Type       *string `param:"type" alias:"volumeType" enum:"gp2|gp3|io1|io2|st1|sc1|standard" doc:"Volume type."`
	IOPS       *int64  `param:"iops" min:"100" max:"256000" doc:"Provisioned operations per second, for gp3, io1 and io2."`
	IOPSPerGB  *int64  `param:"iopsPerGB" min:"1" doc:"Provisioned operations per second for each GiB that the volume has when it is changed, instead of iops. A volume whose type and size allow fewer gets the most that they allow."`
	Throughput *int64  `param:"throughput" min:"125" max:"2000" doc:"Provisioned MiB per second, for gp3."`
}

// Validate checks combinations, which no single struct tag can.
func (m *Mutable) Validate() error {
	if m.IOPS != nil && m.IOPSPerGB != nil {
		return backends.Errorf(backends.Invalid, "iops and iopsPerGB exclude each other: leave one out")
	}
	return nil
}

// SnapshotParameters are the parameters of a VolumeSnapshotClass.
type SnapshotParameters struct {
	FastZones   string `param:"fastSnapshotRestoreAvailabilityZones" alias:"fastsnapshotrestoreavailabilityzones" doc:"Zones, with commas between them, in which volumes of the snapshot have their full speed at once. EC2 charges for each by the hour."`
	LockMode    string `param:"lockMode" alias:"lockmode" enum:"governance|compliance" doc:"Lock the snapshot against deletion. Nobody can take away a lock of mode compliance."`
	LockDays    int64  `param:"lockDuration" alias:"lockduration" min:"1" max:"36500" doc:"Days for which it is locked."`
	LockUntil   string `param:"lockExpirationDate" alias:"lockexpirationdate" doc:"Until when it is locked instead, such as 2030-12-31T00:00:00Z."`
	LockCoolOff int64  `param:"lockCoolOffPeriod" alias:"lockcooloffperiod" min:"1" max:"72" doc:"Hours in which a lock of mode compliance can still be changed."`
	Tags
}

// Validate checks combinations, which no single struct tag can.
func (p *Parameters) Validate() error {
	switch {
	case p.IOPS != 0 && p.IOPSPerGB != 0:
		return backends.Errorf(backends.Invalid, "iops and iopsPerGB exclude each other: leave one out")
	case p.AutoIOPS && p.IOPSPerGB == 0:
		return backends.Errorf(backends.Invalid,
			"allowAutoIOPSPerGBIncrease goes with iopsPerGB only: give that too or leave it out")
	case p.KMSKeyID != "" && p.Encrypted != nil && !*p.Encrypted:
		return backends.Errorf(backends.Invalid,
			"kmsKeyId goes with encrypted volumes only: leave it out, or leave encrypted: \"false\" out")
	case p.Ext4Encryption:
		return backends.Errorf(backends.Invalid, "ext4EncryptionSupport: \"true\" is not possible here: leave it out, and "+
			"use encrypted: \"true\" to encrypt the whole volume")
	case p.WaitInitialized:
		return backends.Errorf(backends.Invalid, "blockAttachUntilInitialized: \"true\" is not possible here: leave it out, "+
			"and use fastSnapshotRestoreAvailabilityZones in the VolumeSnapshotClass for volumes with their full speed at once")
	}
	return nil
}

// encryption returns whether the volume is encrypted, or nil for the account's default. As in aws-ebs-csi-driver, a key
// implies it.
func (p *Parameters) encryption() *bool {
	if p.KMSKeyID != "" {
		return aws.Bool(true)
	}
	return p.Encrypted
}

func parametersOf(value any) (Parameters, error) {
	p, err := backends.Given[Parameters](value)
	if err != nil {
		return p, err
	}
	p.Type = cmp.Or(p.Type, typeGP3)
	return p, p.Validate()
}

func snapshotParametersOf(value any) (SnapshotParameters, error) {
	p, err := backends.Given[SnapshotParameters](value)
	if err != nil {
		return p, err
	}
	return p, p.Validate()
}
