package iam

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Policy is an identity-based policy.
type Policy struct {
	Version   string
	Statement []Statement
}

// Statement allows actions on resources.
type Statement struct {
	Sid, Effect string
	Action      Texts
	Resource    Texts
	Condition   map[string]map[string]Texts // wanted values, by operator and key
}

// Texts is one text or a list of texts.
type Texts []string

// UnmarshalJSON reads either.
func (t *Texts) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*t = Texts{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(t))
}

// Parse parses a policy strictly: an element that Allows would ignore is an error.
func Parse(text []byte) (Policy, error) {
	var p Policy
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		return p, err
	}
	if p.Version != "2012-10-17" || len(p.Statement) == 0 {
		return p, fmt.Errorf("the policy has the version %q and %d statements", p.Version, len(p.Statement))
	}
	var sids []string
	for _, s := range p.Statement {
		if err := s.check(); err != nil {
			return p, fmt.Errorf("statement %q: %w", s.Sid, err)
		}
		if slices.Contains(sids, s.Sid) {
			return p, fmt.Errorf("two statements are called %q", s.Sid)
		}
		sids = append(sids, s.Sid)
	}
	return p, nil
}

func (s Statement) check() error {
	switch {
	case !regexp.MustCompile(`^[A-Za-z0-9]+$`).MatchString(s.Sid):
		return fmt.Errorf("its name is not of letters and digits")
	case s.Effect != "Allow":
		return fmt.Errorf("its effect is %q: only Allow is known here", s.Effect)
	case len(s.Action) == 0 || len(s.Resource) == 0:
		return fmt.Errorf("it has no actions or no resources")
	}
	for _, action := range s.Action {
		if !regexp.MustCompile(`^[a-z0-9]+:[A-Za-z]+$`).MatchString(action) {
			return fmt.Errorf("the action %q is not one action of a service", action)
		}
	}
	for _, resource := range s.Resource {
		if resource != "*" && strings.Count(resource, ":") < 5 {
			return fmt.Errorf("the resource %q is no ARN", resource)
		}
	}
	for operator, keys := range s.Condition {
		for key, values := range keys {
			if !known(operator) || !strings.Contains(key, ":") || len(values) == 0 {
				return fmt.Errorf("the condition %s %s %q is not known here", operator, key, values)
			}
		}
	}
	return nil
}

func known(operator string) bool {
	return slices.Contains([]string{"StringEquals", "StringLike", "ForAllValues:StringLike", "Null", "Bool"}, operator)
}
