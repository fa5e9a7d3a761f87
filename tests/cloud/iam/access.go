package iam

import (
	"regexp"
	"slices"
	"strings"
)

// Access is one right that a request needs: an action on one resource.
type Access struct {
	Action, Resource string
	// Context contains the values of condition keys. Keys that the request does not have are missing.
	Context map[string][]string
}

// Allows reports whether a statement of the policy allows the access.
func (p Policy) Allows(a Access) bool {
	return slices.ContainsFunc(p.Statement, func(s Statement) bool { return s.allows(a) })
}

func (s Statement) allows(a Access) bool {
	like := func(pattern string) bool { return matches(pattern, a.Resource) }
	if !slices.Contains(s.Action, a.Action) || !slices.ContainsFunc(s.Resource, like) {
		return false
	}
	for operator, keys := range s.Condition {
		for key, wanted := range keys {
			if !holds(operator, a.Context[key], wanted) {
				return false
			}
		}
	}
	return true
}

// holds reports whether a condition on one key holds. ForAllValues also holds without any value, so that it should be
// combined with Null.
func holds(operator string, have []string, wanted Texts) bool {
	like := func(value string) bool {
		return slices.ContainsFunc(wanted, func(pattern string) bool { return matches(pattern, value) })
	}
	switch operator {
	case "StringEquals", "Bool":
		return len(have) == 1 && slices.Contains(wanted, have[0])
	case "StringLike":
		return len(have) == 1 && like(have[0])
	case "ForAllValues:StringLike":
		return !slices.ContainsFunc(have, func(value string) bool { return !like(value) })
	case "Null":
		return slices.Equal(wanted, Texts{"true"}) == (len(have) == 0)
	}
	return false
}

// matches reports whether a text matches a pattern, in which * is any text, including slashes and colons, and ? any
// character.
func matches(pattern, text string) bool {
	quoted := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile(`(?s)^` + quoted + `$`).MatchString(text)
}
