package ebs

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/base64url"
	"github.com/stowage-csi/stowage/pkg/params/placeholder"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// The tags with the name of a volume or snapshot. The keys are those of aws-ebs-csi-driver, to which bills and policies
// may refer.
const (
	volumeNameTag   = "CSIVolumeName"
	snapshotNameTag = "CSIVolumeSnapshotName"
)

// encoded is the prefix of a tag's value that is not the text itself.
const encoded = "base64:"

// tagValue encodes a text as a tag's value and as a filter: EC2 rejects control characters, trims spaces, and treats *
// and ? in filters as wildcards. A text of 185 bytes fits into the 256 characters of a value.
func tagValue(text string) string {
	const plain, longest = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/=+@-", 200
	if len(text) <= longest && only(plain, text) {
		return text
	}
	return encoded + base64url.Encode([]byte(text))
}

// only reports whether a text consists of the given characters only.
func only(characters, text string) bool { return strings.Trim(text, characters) == "" }

// tagText reverses tagValue. It returns a value of other origin unchanged.
func tagText(value string) string {
	rest, ok := strings.CutPrefix(value, encoded)
	if text, err := base64url.Decode(rest); ok && err == nil {
		return string(text)
	}
	return value
}

// fingerprintTag is the key of a volume's fingerprint.
func (b *backend) fingerprintTag() string { return b.driver + "/fingerprint" }

// rawTag is the key of the tag on volumes created as raw devices, and on their snapshots.
func (b *backend) rawTag() string { return b.driver + "/raw" }

// settingPrefix begins the keys of a volume's settings. Each setting has a tag of its own: together they are too long
// for one.
func (b *backend) settingPrefix() string { return b.driver + "/setting/" }

// settingsOf reads a volume's settings from its tags.
func (b *backend) settingsOf(tags []types.Tag) map[string]string {
	var settings map[string]string
	for _, t := range tags {
		if key, ok := strings.CutPrefix(aws.ToString(t.Key), b.settingPrefix()); ok {
			if settings == nil {
				settings = map[string]string{}
			}
			settings[key] = tagText(aws.ToString(t.Value))
		}
	}
	return settings
}

// raw reports whether a thing with the tags was created as a raw device.
func (b *backend) raw(tags []types.Tag) bool {
	_, marked := tag(tags, b.rawTag())
	return marked
}

// probeTag is the key of a tag without meaning: adding and removing it shows whether EC2 has a volume.
func (b *backend) probeTag() string { return b.driver + "/probe" }

// tagsFor returns the tags of a new thing. Kinds: Invalid for a template that cannot be rendered or a tag that is
// reserved.
func (b *backend) tagsFor(nameTag, name string, extra Tags, claim backends.Claim) (map[string]string, error) {
	tags := maps.Clone(b.config.ExtraTags)
	if tags == nil {
		tags = map[string]string{}
	}
	for _, text := range extra.list() {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, backends.Errorf(backends.Invalid, "the tag %q is not of the form key=value", secret.Option(text))
		}
		rendered, err := render(value, claim)
		if err != nil {
			return nil, err
		}
		tags[key] = rendered
	}
	for key := range tags {
		if key == nameTag || strings.HasPrefix(key, b.driver+"/") || strings.HasPrefix(key, "aws:") {
			return nil, backends.Errorf(backends.Invalid, "the tag %q is reserved: use another key", secret.Option(key))
		}
	}
	tags[nameTag], tags[b.ownerTag()] = tagValue(name), b.cluster()
	return tags, nil
}

// The maximum number of tags ("Tag restrictions" in the EC2 User Guide). A volume keeps room for the tag that proves a
// read to be recent.
const (
	mostTags       = 50
	mostVolumeTags = mostTags - 1
)

// countTags refuses more tags than there is room for. Kinds: Invalid.
func (b *backend) countTags(tags map[string]string, most int) error {
	if len(tags) <= most {
		return nil
	}
	given := len(tags) - b.ownTags(tags)
	return backends.Errorf(backends.Invalid,
		"%d tags are too many: there is room for %d, of which the driver's own take %d, and extraTags and the class have "+
			"%d: leave out %d of these", len(tags), most, b.ownTags(tags), given, len(tags)-most)
}

// ownTags counts the driver's own among the tags.
func (b *backend) ownTags(tags map[string]string) (n int) {
	for key := range tags {
		if key == volumeNameTag || key == snapshotNameTag || strings.HasPrefix(key, b.driver+"/") {
			n++
		}
	}
	return n
}

func (t Tags) list() []string {
	all := []string{t.Tag1, t.Tag2, t.Tag3, t.Tag4, t.Tag5, t.Tag6, t.Tag7, t.Tag8}
	for _, name := range slices.Sorted(maps.Keys(t.Named)) {
		all = append(all, t.Named[name])
	}
	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}

// render fills in a template. It does not use text/template: with that in the program, the linker keeps every method of
// the AWS SDK, 30 MB of them.
func render(text string, claim backends.Claim) (string, error) {
	values := map[placeholder.Field]string{
		placeholder.PVCName: claim.Name, placeholder.PVCNamespace: claim.Namespace, placeholder.PVName: claim.Volume,
	}
	return placeholder.Braces().Fill(text, func(m placeholder.Mark) (string, error) {
		if !m.Closed || m.Field == placeholder.Unknown {
			return "", backends.Errorf(backends.Invalid,
				"the tag's value %q has more than {{ .PVCName }}, {{ .PVCNamespace }} and {{ .PVName }} to be filled in",
				secret.Option(text))
		}
		return values[m.Field], nil
	})
}

// specification returns the tags of a request, always in the same order: a client token is valid for the same request
// only.
func specification(resource types.ResourceType, tags map[string]string) []types.TagSpecification {
	s := types.TagSpecification{ResourceType: resource}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		s.Tags = append(s.Tags, types.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	return []types.TagSpecification{s}
}

// tag returns the value of the tag with the key.
func tag(tags []types.Tag, key string) (string, bool) {
	for _, t := range tags {
		if aws.ToString(t.Key) == key {
			return aws.ToString(t.Value), true
		}
	}
	return "", false
}
