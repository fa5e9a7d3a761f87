package bundle

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/secret"
)

// cleaner removes possible secrets from objects.
type cleaner struct {
	arguments bool // keeps the arguments of containers, as for Stowage's own pods
}

// object returns an object in its JSON form, without possible secrets.
func (c cleaner) object(o any) (any, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return nil, err
	}
	return c.value(plain), nil
}

func (c cleaner) value(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = c.value(v[i])
		}
	case map[string]any:
		for name, inner := range v {
			if c.leavesOut(name) {
				delete(v, name)
				continue
			}
			v[name] = c.field(name, inner)
		}
	}
	return v
}

// leavesOut reports whether a field may hold anything, and is not needed.
func (c cleaner) leavesOut(name string) bool {
	switch name {
	case "managedFields", "env", "envFrom", "command", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe",
		"data", "stringData", "binaryData", "ephemeralContainers", "gitRepo":
		return true
	}
	return name == "args" && !c.arguments
}

func (c cleaner) field(name string, v any) any {
	switch name {
	case "annotations":
		return annotations(v)
	case "parameters", "mutableParameters", "volumeAttributes", "attachmentMetadata", "options", "labels", "matchLabels",
		"segments", "settings":
		return named(v)
	case "selector":
		return c.selector(v)
	case "mountOptions":
		return texts(v, secret.Option)
	case "args":
		return texts(v, argument)
	case "message", "problem":
		return texts(v, text)
	case "terminated": // the container's own termination message
		if state, ok := v.(map[string]any); ok {
			delete(state, "message")
		}
	}
	return c.value(v)
}

// annotations keeps the annotations of Kubernetes and of Stowage, except kubectl's, which holds the whole object.
func annotations(v any) any {
	all, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	for name := range all {
		domain, _, _ := strings.Cut(name, "/")
		ours := slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "stowage.dev"}, func(known string) bool {
			return domain == known || strings.HasSuffix(domain, "."+known)
		})
		if !ours || domain == "kubectl.kubernetes.io" {
			delete(all, name)
		}
	}
	return named(all)
}

// selector hides values of a selector, as they are hidden in labels. A PersistentVolumeSet has a selector as text and
// one as a map of labels. Kubernetes' own form has other fields.
func (c cleaner) selector(v any) any {
	all, ok := v.(map[string]any)
	if !ok {
		return texts(v, secret.Option)
	}
	for _, value := range all {
		if _, isText := value.(string); !isText {
			return c.value(v)
		}
	}
	return named(v)
}

// named hides the values whose names suggest a secret.
func named(v any) any {
	all, ok := v.(map[string]any)
	if !ok {
		return texts(v, secret.Option)
	}
	for name, value := range all {
		if secret.Named(name) {
			all[name] = secret.Hidden
		} else {
			all[name] = texts(value, secret.Option)
		}
	}
	return all
}

// texts changes a text, or each text of a list. It drops all other values, which are not expected.
func texts(v any, change func(string) string) any {
	switch v := v.(type) {
	case string:
		return change(v)
	case []any:
		for i := range v {
			v[i] = texts(v[i], change)
		}
		return v
	}
	return nil
}

// argument keeps flags, and the subcommands of Stowage's programs. Another word may be the value of the flag before it.
func argument(arg string) string {
	known := []string{"controller", "node", "standalone", "master", "worker", "volume-worker", "recycler", "disks",
		"scrub", "probe"}
	if !strings.HasPrefix(arg, "-") && !slices.Contains(known, arg) {
		return secret.Hidden
	}
	return secret.Option(arg)
}

// text hides, in a program's output, what speaking matches.
func text(line string) string { return hidden(speaking(), line) }

func hidden(speaking *regexp.Regexp, line string) string {
	return speaking.ReplaceAllString(line, "${1}${3}"+secret.Hidden)
}

// speaking matches a name that suggests a secret, and its value, or a URL's user and password. "key" alone does not
// match: in many logs it is an object's name.
func speaking() *regexp.Regexp {
	return regexp.MustCompile(
		`(?i)([\w.-]*(?:token|secret|passw|pwd|passphrase|credential|chap|accesskey|authorization)[\w.-]*"?\s*[=:]\s*)` +
			`("[^"]*"|(?:bearer |basic )?[^\s,;]+)|(//[^/\s:]*:)[^\s"]+@`)
}
