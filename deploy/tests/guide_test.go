package tests

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestGuideWarnsOfHandles checks that the guide from which the examples' directory pool comes says what a pod can reach
// from it, and which kind of pool to use instead. TestHandlesReachBeyondDirectories in tests/hostile demonstrates the
// reach.
func TestGuideWarnsOfHandles(t *testing.T) {
	text, err := os.ReadFile("../../docs/guides/install.md")
	if err != nil {
		t.Fatal(err)
	}
	for paragraph := range strings.SplitSeq(string(text), "\n\n") {
		said := true
		for _, word := range []string{"open_by_handle_at", "CAP_DAC_READ_SEARCH", `directory(\x60)? pool`,
			`image(\x60)? pool`} {
			said = said && regexp.MustCompile(word).MatchString(paragraph)
		}
		if said {
			return
		}
	}
	t.Error("no paragraph of docs/guides/install.md says that a directory pool lets handles reach the node's files, and " +
		"an image pool does not")
}

// TestGuideValues checks that the chart accepts the values in a guide.
func TestGuideValues(t *testing.T) {
	for guide, mode := range map[string]string{"install.md": "standalone", "local-volumes.md": "cluster"} {
		text, err := os.ReadFile("../../docs/guides/" + guide)
		if err != nil {
			t.Fatal(err)
		}
		_, shown, found := strings.Cut(string(text), "```yaml\n# values.yaml")
		shown, _, _ = strings.Cut(shown, "\n```\n")
		values := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte("#"+shown), &values); err != nil || !found {
			t.Fatalf("%s shows values: %t: %v", guide, found, err)
		}
		local, is := values["local"].(map[string]any)
		if !is {
			t.Fatalf("%s shows no values of local volumes: %v", guide, values)
		}
		local["mode"] = mode
		if _, err := rendered(values, false); err != nil {
			t.Errorf("%s: %v", guide, err)
		}
	}
}
