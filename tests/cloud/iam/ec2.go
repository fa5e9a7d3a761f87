package iam

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// arns is the prefix of every resource's name here.
const arns = "arn:aws:ec2:region-1:111122223333:"

// Tags returns the tags of a volume, snapshot or instance, or nil if it does not exist.
type Tags func(id string) map[string]string

// accesses returns the rights that a request to EC2 needs, and false for an unknown action.
func accesses(request url.Values, tags Tags) ([]Access, bool) {
	r := reader{request, "ec2:" + request.Get("Action"), tags}
	volume, snapshot, instance := request.Get("VolumeId"), request.Get("SnapshotId"), request.Get("InstanceId")
	switch action := request.Get("Action"); action {
	case "CreateVolume":
		list := r.makes("volume")
		if snapshot != "" {
			list = append(list, r.on("snapshot", snapshot))
		}
		return list, true
	case "CopyVolumes":
		return append(r.makes("volume"), r.on("volume", request.Get("SourceVolumeId"))), true
	case "CreateSnapshot":
		return append(r.makes("snapshot"), r.on("volume", volume)), true
	case "DeleteVolume", "ModifyVolume":
		return []Access{r.on("volume", volume)}, true
	case "AttachVolume", "DetachVolume":
		return []Access{r.on("volume", volume), r.on("instance", instance)}, true
	case "EnableFastSnapshotRestores":
		return []Access{r.on("snapshot", request.Get("SourceSnapshotId.1"))}, !request.Has("SourceSnapshotId.2")
	case "DeleteSnapshot", "LockSnapshot":
		return []Access{r.on("snapshot", snapshot)}, true
	case "CreateTags", "DeleteTags":
		return r.tags(), true
	default:
		// Describe actions have no resources.
		return []Access{{Action: r.action, Resource: "*"}}, strings.HasPrefix(action, "Describe")
	}
}

// reader derives rights from a request.
type reader struct {
	request url.Values
	action  string
	known   Tags
}

// pairs reads the tags below a key.
func (r reader) pairs(key string) map[string]string {
	pairs := map[string]string{}
	for i := 1; r.request.Has(fmt.Sprintf("%s.%d.Key", key, i)); i++ {
		pairs[r.request.Get(fmt.Sprintf("%s.%d.Key", key, i))] = r.request.Get(fmt.Sprintf("%s.%d.Value", key, i))
	}
	return pairs
}

// asked returns the condition keys for the tags of a request.
func asked(tags map[string]string) map[string][]string {
	context := map[string][]string{}
	for key, value := range tags {
		context["aws:RequestTag/"+key] = []string{value}
	}
	if len(tags) > 0 {
		context["aws:TagKeys"] = slices.Sorted(maps.Keys(tags))
	}
	return context
}

// makes returns the rights to create a resource, and to tag it if the request has tags.
func (r reader) makes(kind string) []Access {
	tags := r.pairs("TagSpecification.1.Tag")
	list := []Access{{r.action, arns + kind + "/*", asked(tags)}}
	if len(tags) > 0 {
		context := asked(tags)
		context["ec2:CreateAction"] = []string{r.request.Get("Action")}
		list = append(list, Access{"ec2:CreateTags", arns + kind + "/*", context})
	}
	return list
}

// on returns the right to act on an existing resource.
func (r reader) on(kind, id string) Access {
	context := map[string][]string{}
	for key, value := range r.known(id) {
		context["ec2:ResourceTag/"+key] = []string{value}
	}
	return Access{r.action, arns + kind + "/" + id, context}
}

// tags returns the rights to change the tags of each named resource.
func (r reader) tags() (list []Access) {
	for i := 1; r.request.Has(fmt.Sprintf("ResourceId.%d", i)); i++ {
		id := r.request.Get(fmt.Sprintf("ResourceId.%d", i))
		kind := map[string]string{"vol": "volume", "snap": "snapshot", "i": "instance"}[strings.SplitN(id, "-", 2)[0]]
		access := r.on(kind, id)
		context := asked(r.pairs("Tag"))
		if r.action == "ec2:DeleteTags" {
			maps.DeleteFunc(context, func(key string, _ []string) bool { return strings.HasPrefix(key, "aws:RequestTag/") })
		}
		maps.Copy(access.Context, context)
		list = append(list, access)
	}
	return list
}
