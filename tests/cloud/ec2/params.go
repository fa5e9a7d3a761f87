package ec2

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
)

// params are a request's parameters. Reading one marks it as known. The first invalid one is remembered.
type params struct {
	values url.Values
	known  map[string]bool
	fault  *fault
}

func newParams(values url.Values) *params {
	return &params{values: values, known: map[string]bool{"Action": true, "Version": true}}
}

func (p *params) has(key string) bool { return p.values.Has(key) }

func (p *params) text(key string) string {
	p.known[key] = true
	if len(p.values[key]) > 1 {
		p.blame(faultf("InvalidParameterValue", "%s is given twice", key))
	}
	return p.values.Get(key)
}

func (p *params) required(key string) string {
	if text := p.text(key); text != "" {
		return text
	}
	p.blame(faultf("MissingParameter", "The request must contain the parameter %s", key))
	return ""
}

// id reads a resource's ID, and checks its form.
func (p *params) id(key, prefix string) string {
	id := p.required(key)
	if id != "" {
		p.blame(malformed(prefix, id))
	}
	return id
}

func malformed(prefix, id string) *fault {
	if wellFormed(prefix, id) {
		return nil
	}
	code := map[string]string{"vol": "InvalidVolumeID.Malformed", "snap": "InvalidSnapshotID.Malformed",
		"i": "InvalidInstanceID.Malformed"}[prefix]
	return faultf(code, "Invalid id: %q", id)
}

func (p *params) integer(key string) int {
	text := p.text(key)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		p.blame(faultf("InvalidParameterValue", "Invalid value '%s' for %s", text, key))
	}
	return int(n)
}

func (p *params) boolean(key string) bool {
	text := p.text(key)
	if text != "" && text != "true" && text != "false" {
		p.blame(faultf("InvalidParameterValue", "Invalid value '%s' for %s", text, key))
	}
	return text == "true"
}

// list reads key.1, key.2 and so on.
func (p *params) list(key string) (texts []string) {
	for i := 1; p.has(fmt.Sprintf("%s.%d", key, i)); i++ {
		texts = append(texts, p.text(fmt.Sprintf("%s.%d", key, i)))
	}
	return texts
}

// tags reads key.1.Key and key.1.Value and so on.
func (p *params) tags(key string) map[string]string {
	tags := map[string]string{}
	for i := 1; p.has(fmt.Sprintf("%s.%d.Key", key, i)); i++ {
		name, value := p.text(fmt.Sprintf("%s.%d.Key", key, i)), p.text(fmt.Sprintf("%s.%d.Value", key, i))
		if _, twice := tags[name]; twice {
			p.blame(faultf("InvalidParameterValue", "Duplicate tag key '%s' specified", name))
		}
		p.blame(checkTag(name, value))
		tags[name] = value
	}
	if len(tags) > maxTags {
		p.blame(faultf("TagLimitExceeded", "%d tags are more than %d", len(tags), maxTags))
	}
	return tags
}

// tagsFor reads the tag specifications of a request that creates resources of one type.
func (p *params) tagsFor(resource string) map[string]string {
	if !p.has("TagSpecification.1.ResourceType") {
		return map[string]string{}
	}
	if have := p.text("TagSpecification.1.ResourceType"); have != resource || p.has("TagSpecification.2.ResourceType") {
		p.blame(faultf("InvalidParameterValue", "'%s' is not the one taggable resource type here: %s", have, resource))
	}
	return p.tags("TagSpecification.1.Tag")
}

func (p *params) blame(f *fault) {
	if p.fault == nil {
		p.fault = f
	}
}

// check returns the first fault of the parameters, including unknown ones, or nil.
func (p *params) check() *fault {
	for _, key := range slices.Sorted(maps.Keys(p.values)) {
		if !p.known[key] {
			p.blame(faultf("UnknownParameter", "The parameter %s is not recognized", key))
		}
	}
	return p.fault
}
