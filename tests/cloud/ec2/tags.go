package ec2

import (
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of tags.
const (
	maxTags     = 50
	maxTagKey   = 128
	maxTagValue = 256
)

func checkTag(key, value string) *fault {
	odd := func(text string) bool {
		return !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl)
	}
	switch {
	case key == "" || utf8.RuneCountInString(key) > maxTagKey || odd(key):
		return faultf("InvalidParameterValue", "Tag key %q is not of 1 to %d characters", key, maxTagKey)
	case utf8.RuneCountInString(value) > maxTagValue || odd(value):
		return faultf("InvalidParameterValue", "Tag value %q exceeds the maximum length of %d characters", value, maxTagValue)
	case strings.HasPrefix(strings.ToLower(key), "aws:"):
		return faultf("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
	}
	return nil
}

func (s *Server) createTags(p *params) effect {
	tags := p.tags("Tag")
	return s.retag(p, "CreateTags", func(have map[string]string) { maps.Copy(have, tags) })
}

// deleteTags keeps a tag whose value differs from the request's, if the request has one.
func (s *Server) deleteTags(p *params) effect {
	tags := p.tags("Tag")
	return s.retag(p, "DeleteTags", func(have map[string]string) {
		maps.DeleteFunc(have, func(key, value string) bool {
			want, named := tags[key]
			return named && (want == "" || want == value)
		})
	})
}

// retag changes the tags of the resources in a request.
func (s *Server) retag(p *params, action string, edit func(map[string]string)) effect {
	ids := p.list("ResourceId")
	if len(ids) == 0 {
		p.blame(faultf("MissingParameter", "The request must contain the parameter ResourceId"))
	}
	return func() (any, *fault) {
		for _, id := range ids {
			if f := s.taggable(id); f != nil {
				return nil, f
			}
		}
		for _, id := range ids {
			var f *fault
			limit := func(tags map[string]string) {
				if len(tags) > maxTags {
					f = faultf("TagLimitExceeded", "%d tags are more than %d", len(tags), maxTags)
				}
			}
			if s.volumes.now(id) != nil {
				s.change(id, func(v *volume) { edit(v.tags); limit(v.tags) })
			} else {
				s.changeSnapshot(id, func(n *snapshot) { edit(n.tags); limit(n.tags) })
			}
			if f != nil {
				return nil, f
			}
		}
		return done(action), nil
	}
}

// taggable returns the fault of a resource's ID. A missing resource has the error code of its kind, as elsewhere.
func (s *Server) taggable(id string) (f *fault) {
	switch kind, _, _ := strings.Cut(id, "-"); kind {
	case "vol":
		_, f = s.volume(id)
	case "snap":
		_, f = s.snapshot(id)
	default:
		f = faultf("InvalidID", "The ID '%s' is not valid", id)
	}
	return f
}
