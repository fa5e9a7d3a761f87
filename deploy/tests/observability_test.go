package tests

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// exported is the content of deploy/observability/series.txt and manager-series.txt.
type exported struct {
	labels map[string][]string // of a series
	values map[string][]string // of a label
}

// readDashboard reads the dashboard.
func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("../observability/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDashboardShowsMainMetrics checks that the main metrics of the controllers and of a backend have a panel.
func TestDashboardShowsMainMetrics(t *testing.T) {
	var all strings.Builder
	for _, panel := range readDashboard(t).Panels {
		for _, target := range panel.Targets {
			all.WriteString(target.Expr + "\n")
		}
	}
	for _, series := range []string{
		"stowage_volumeset_volumes", "stowage_claim_bound_seconds", "stowage_recycler_scrubs_total",
		"stowage_recycler_scrub_seconds", "stowage_recycler_longest_wait_seconds", "stowage_failover_nodes",
		"stowage_failover_detachments_total", "stowage_orphans",
		"aws_ebs_csi_api_request_duration_seconds_count", "aws_ebs_csi_api_request_duration_seconds_bucket",
		"aws_ebs_csi_api_request_errors_total", "aws_ebs_csi_api_request_throttles_total",
		"aws_ebs_csi_exceeded_iops_seconds_total", "aws_ebs_csi_exceeded_tp_seconds_total",
		"aws_ebs_csi_ec2_exceeded_iops_seconds_total", "aws_ebs_csi_ec2_exceeded_tp_seconds_total",
		"aws_ebs_csi_read_io_latency_seconds_bucket", "aws_ebs_csi_write_io_latency_seconds_bucket",
		"aws_ebs_csi_volume_queue_length",
	} {
		if !strings.Contains(all.String(), series) {
			t.Errorf("no panel shows %s", series)
		}
	}
}

// exports reads the lists. tests/observability checks them against the driver, and tests of pkg/controllers check them
// against the manager.
func exports(t *testing.T) exported {
	t.Helper()
	var text []byte
	for _, list := range []string{"../observability/series.txt", "../observability/manager-series.txt"} {
		one, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, one...)
	}
	e := exported{labels: map[string][]string{}, values: map[string][]string{}}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if label, list, ok := strings.Cut(strings.TrimPrefix(line, "values "), ": "); ok &&
			strings.HasPrefix(line, "values ") {
			e.values[label] = strings.Split(list, "|")
		} else if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "#" {
			// Prometheus itself adds labels for the origin of a series.
			e.labels[fields[0]] = append(fields[1:], "instance", "job", "__name__")
		}
	}
	if len(e.labels) < 10 {
		t.Fatalf("there are %d series only", len(e.labels))
	}
	return e
}

// check parses an expression and returns its errors.
func (e exported) check(expression string) []string {
	root, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		return []string{err.Error()}
	}
	var wrong []string
	known := map[string]bool{} // labels of all series in it
	parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
		if selector, ok := n.(*parser.VectorSelector); ok {
			wrong = append(wrong, e.selector(selector, known)...)
		}
		return nil
	})
	parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
		for _, label := range grouping(n) {
			if !known[label] {
				wrong = append(wrong, "no series in it has the label "+label)
			}
		}
		return nil
	})
	if len(known) == 0 {
		wrong = append(wrong, "it looks at no series")
	}
	return wrong
}

func (e exported) selector(s *parser.VectorSelector, known map[string]bool) (wrong []string) {
	list, ok := e.labels[s.Name]
	if !ok {
		return []string{"the driver exports no " + s.Name}
	}
	for _, label := range list {
		known[label] = true
	}
	for _, m := range s.LabelMatchers {
		if !slices.Contains(list, m.Name) {
			wrong = append(wrong, s.Name+" has no label "+m.Name)
		}
		values, closed := e.values[m.Name]
		if !closed || m.Type == labels.MatchNotRegexp || m.Type == labels.MatchNotEqual && slices.Contains(values, m.Value) {
			continue
		}
		parts := []string{m.Value}
		if m.Type == labels.MatchRegexp {
			parts = strings.Split(m.Value, "|")
		}
		for _, part := range parts {
			if !slices.Contains(values, part) {
				wrong = append(wrong, m.Name+" is never "+part)
			}
		}
	}
	return wrong
}

// grouping returns the labels that a node uses outside of selectors.
func grouping(n parser.Node) []string {
	switch n := n.(type) {
	case *parser.AggregateExpr:
		return n.Grouping
	case *parser.BinaryExpr:
		if n.VectorMatching != nil {
			return append(slices.Clone(n.VectorMatching.MatchingLabels), n.VectorMatching.Include...)
		}
	}
	return nil
}

// rules is the part of a Prometheus rules file that this project uses.
type rules struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []struct {
			Alert       string            `json:"alert"`
			Expr        string            `json:"expr"`
			For         string            `json:"for"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"rules"`
	} `json:"groups"`
}

func TestAlerts(t *testing.T) {
	text, err := os.ReadFile("../observability/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file rules
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	e, seen := exports(t), map[string]bool{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			t.Run(rule.Alert, func(t *testing.T) {
				for _, wrong := range e.check(rule.Expr) {
					t.Error(wrong)
				}
				if seen[rule.Alert] || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" ||
					!slices.Contains([]string{"info", "warning", "critical"}, rule.Labels["severity"]) {
					t.Error("it is there twice, or lacks a summary, a description or a severity")
				}
				if _, err := time.ParseDuration(rule.For); err != nil && rule.For != "" {
					t.Error(err)
				}
				seen[rule.Alert] = true
				checkTexts(t, rule.Expr, rule.Annotations)
			})
		}
	}
	if len(seen) == 0 {
		t.Error("there are no alerts")
	}
}

// checkTexts checks that the labels in a text are among the alert's labels, which are those that the alert groups by.
func checkTexts(t *testing.T, expression string, texts map[string]string) {
	t.Helper()
	for _, text := range texts {
		for _, match := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(text, -1) {
			root, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
			if err != nil {
				continue // Reported by check.
			}
			if kept := outermost(root); kept != nil && !slices.Contains(kept, match[1]) {
				t.Errorf("a text names the label %s, of which only %q are left", match[1], kept)
			}
		}
	}
}

// outermost returns the labels that the outermost aggregation keeps, or nil if there is none.
func outermost(root parser.Node) []string {
	var kept []string
	parser.Inspect(root, func(n parser.Node, path []parser.Node) error {
		a, ok := n.(*parser.AggregateExpr)
		inner := slices.ContainsFunc(path, func(p parser.Node) bool { _, is := p.(*parser.AggregateExpr); return is })
		if ok && !inner && kept == nil {
			kept = a.Grouping
		}
		return nil
	})
	return kept
}

// dashboard is the checked part of a Grafana dashboard.
type dashboard struct {
	Panels []struct {
		ID      int    `json:"id"`
		Type    string `json:"type"`
		Title   string `json:"title"`
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
	Templating struct {
		List []struct {
			Type  string `json:"type"`
			Query string `json:"query"`
		} `json:"list"`
	} `json:"templating"`
}

func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	e, ids := exports(t), map[int]bool{}
	for _, panel := range d.Panels {
		t.Run(panel.Title, func(t *testing.T) {
			if ids[panel.ID] || panel.Type != "row" && len(panel.Targets) == 0 {
				t.Errorf("panel %d is there twice, or shows nothing", panel.ID)
			}
			ids[panel.ID] = true
			for _, target := range panel.Targets {
				for _, wrong := range e.check(strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")) {
					t.Errorf("%s: %s", target.Expr, wrong)
				}
			}
		})
	}
	for _, variable := range d.Templating.List {
		call := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(variable.Query)
		if variable.Type != "query" {
			continue
		}
		if call == nil {
			t.Errorf("%s is no label_values(series, label)", variable.Query)
			continue
		}
		for _, wrong := range e.check("count by (" + call[2] + ") (" + call[1] + ")") {
			t.Errorf("%s: %s", variable.Query, wrong)
		}
	}
}

// TestCheck tests the check of expressions.
func TestCheck(t *testing.T) {
	e := exports(t)
	for _, wrong := range []string{
		"sum(stowage_nothing)", "sum by (volume) (stowage_build_info)", `stowage_build_info{pool="a"}`,
		"rate(stowage_build_info",
		`stowage_rpc_duration_seconds_count{code="Okay"}`, `stowage_rpc_duration_seconds_count{code=~"OK|Okay"}`, "1",
		"stowage_build_info * on (pool) stowage_build_info",
	} {
		if len(e.check(wrong)) == 0 {
			t.Errorf("%s passes", wrong)
		}
	}
}
