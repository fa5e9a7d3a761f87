package ec2

import (
	"encoding/xml"
	"maps"
	"slices"
	"time"
)

// The answers, element by element as the API's model names them.

func name(action string) xml.Name { return xml.Name{Space: namespace, Local: action + "Response"} }

type doneResponse struct {
	XMLName xml.Name
	ID      string `xml:"requestId"`
	Return  bool   `xml:"return"`
}

func done(action string) doneResponse { return doneResponse{name(action), requestID, true} }

type tagXML struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

func tagSet(tags map[string]string) (set []tagXML) {
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		set = append(set, tagXML{key, tags[key]})
	}
	return set
}

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

type attachmentXML struct {
	Volume   string `xml:"volumeId"`
	Instance string `xml:"instanceId"`
	Device   string `xml:"device"`
	State    string `xml:"status"`
	At       string `xml:"attachTime"`
	Delete   bool   `xml:"deleteOnTermination"`
}

func (a attachment) xml(volume string) attachmentXML {
	return attachmentXML{Volume: volume, Instance: a.instance, Device: a.device, State: a.state, At: stamp(a.at)}
}

type attachResponse struct {
	XMLName xml.Name
	ID      string `xml:"requestId"`
	attachmentXML
}

type volumeXML struct {
	Volume      string          `xml:"volumeId"`
	Size        int             `xml:"size"`
	Snapshot    string          `xml:"snapshotId"`
	Source      string          `xml:"sourceVolumeId,omitempty"`
	Zone        string          `xml:"availabilityZone"`
	State       string          `xml:"status"`
	Created     string          `xml:"createTime"`
	Attachments []attachmentXML `xml:"attachmentSet>item,omitempty"`
	Tags        []tagXML        `xml:"tagSet>item,omitempty"`
	Type        string          `xml:"volumeType"`
	IOPS        int             `xml:"iops,omitempty"`
	Throughput  int             `xml:"throughput,omitempty"`
	Encrypted   bool            `xml:"encrypted"`
	Key         string          `xml:"kmsKeyId,omitempty"`
	Multi       bool            `xml:"multiAttachEnabled"`
}

// xml returns a volume's XML, optionally without attachments, as in CreateVolume's answer.
func (v *volume) xml(attachments bool) volumeXML {
	x := volumeXML{
		Volume: v.id, Size: v.size, Snapshot: v.snapshot, Source: v.source, Zone: v.zone, State: v.state,
		Created: stamp(v.created), Tags: tagSet(v.tags),
		Type: v.kind, IOPS: v.iops, Throughput: v.throughput, Encrypted: v.encrypted, Key: v.key, Multi: v.multi,
	}
	for _, a := range v.attachments {
		if attachments {
			x.Attachments = append(x.Attachments, a.xml(v.id))
		}
	}
	return x
}

type createVolumeResponse struct {
	XMLName xml.Name `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ CreateVolumeResponse"`
	volumeXML
}

type copyVolumesResponse struct {
	XMLName xml.Name    `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ CopyVolumesResponse"`
	Volumes []volumeXML `xml:"volumeSet>item"`
}

type volumesResponse struct {
	XMLName xml.Name    `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeVolumesResponse"`
	Volumes []volumeXML `xml:"volumeSet>item"`
	Next    string      `xml:"nextToken,omitempty"`
}

type modificationXML struct {
	Volume         string `xml:"volumeId"`
	State          string `xml:"modificationState"`
	FromSize       int    `xml:"originalSize"`
	FromIOPS       int    `xml:"originalIops,omitempty"`
	FromThroughput int    `xml:"originalThroughput,omitempty"`
	FromType       string `xml:"originalVolumeType"`
	ToSize         int    `xml:"targetSize"`
	ToIOPS         int    `xml:"targetIops,omitempty"`
	ToThroughput   int    `xml:"targetThroughput,omitempty"`
	ToType         string `xml:"targetVolumeType"`
	Began          string `xml:"startTime"`
}

func (m *modification) xml(volume string) modificationXML {
	return modificationXML{
		Volume: volume, State: m.state, FromSize: m.from.size, FromIOPS: m.from.iops, FromThroughput: m.from.throughput,
		FromType: m.from.kind,
		ToSize:   m.to.size, ToIOPS: m.to.iops, ToThroughput: m.to.throughput, ToType: m.to.kind, Began: stamp(m.at),
	}
}

type modifyResponse struct {
	XMLName      xml.Name        `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ ModifyVolumeResponse"`
	Modification modificationXML `xml:"volumeModification"`
}

type modificationsResponse struct {
	XMLName       xml.Name          `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeVolumesModificationsResponse"`
	Modifications []modificationXML `xml:"volumeModificationSet>item"`
	Next          string            `xml:"nextToken,omitempty"`
}

type snapshotXML struct {
	Snapshot    string   `xml:"snapshotId"`
	Volume      string   `xml:"volumeId"`
	State       string   `xml:"status"`
	Began       string   `xml:"startTime"`
	Size        int      `xml:"volumeSize"`
	Description string   `xml:"description"`
	Encrypted   bool     `xml:"encrypted"`
	Tags        []tagXML `xml:"tagSet>item,omitempty"`
}

func (n *snapshot) xml() snapshotXML {
	return snapshotXML{n.id, n.volume, n.state, stamp(n.began), n.size, n.description, n.encrypted, tagSet(n.tags)}
}

type createSnapshotResponse struct {
	XMLName xml.Name `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ CreateSnapshotResponse"`
	snapshotXML
}

type snapshotsResponse struct {
	XMLName   xml.Name      `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeSnapshotsResponse"`
	Snapshots []snapshotXML `xml:"snapshotSet>item"`
	Next      string        `xml:"nextToken,omitempty"`
}

type diskXML struct {
	Device string `xml:"deviceName"`
	Volume string `xml:"ebs>volumeId"`
	State  string `xml:"ebs>status"`
	// Ephemeral is set for disks that are deleted with the instance.
	Ephemeral bool `xml:"ebs>deleteOnTermination"`
}

type interfaceXML struct {
	ID string `xml:"networkInterfaceId"`
}

type instanceXML struct {
	ID         string         `xml:"instanceId"`
	Type       string         `xml:"instanceType"`
	Zone       string         `xml:"placement>availabilityZone"`
	Code       int            `xml:"instanceState>code"`
	State      string         `xml:"instanceState>name"`
	Launched   string         `xml:"launchTime,omitempty"`
	Reason     *reasonXML     `xml:"stateReason"`
	Disks      []diskXML      `xml:"blockDeviceMapping>item,omitempty"`
	Interfaces []interfaceXML `xml:"networkInterfaceSet>item,omitempty"`
}

type instancesResponse struct {
	XMLName   xml.Name      `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeInstancesResponse"`
	Instances []instanceXML `xml:"reservationSet>item>instancesSet>item"`
}

type typeXML struct {
	Name  string `xml:"instanceType"`
	Max   int    `xml:"ebsInfo>maximumEbsAttachments"`
	Limit string `xml:"ebsInfo>attachmentLimitType"`
}

type typesResponse struct {
	XMLName xml.Name  `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeInstanceTypesResponse"`
	Types   []typeXML `xml:"instanceTypeSet>item"`
}

type zoneXML struct {
	Name  string `xml:"zoneName"`
	State string `xml:"zoneState"`
	Type  string `xml:"zoneType"`
}

type zonesResponse struct {
	XMLName xml.Name  `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeAvailabilityZonesResponse"`
	Zones   []zoneXML `xml:"availabilityZoneInfo>item"`
}
