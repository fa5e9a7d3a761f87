package driver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/backends"
)

const updateFlag = "update"

func TestMain(m *testing.M) {
	flag.Bool(updateFlag, false, "rewrite testdata/errors.json and docs/design/014-answers.md")
	os.Exit(m.Run())
}

// specRow is a row of an error table of the CSI specification. Its RPC is empty in the Error Scheme.
type specRow struct {
	RPC       string
	Condition string
	Code      string
}

// specTables is the content of testdata/errors.json: all rows of one version of the specification.
type specTables struct {
	Version string
	Rows    []specRow
}

// specification parses the error tables of the version of the specification that go.mod names.
func specification(t *testing.T) specTables {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}} {{.Dir}}",
		"github.com/container-storage-interface/spec").Output()
	if err != nil {
		t.Fatal(err)
	}
	version, dir, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	text, err := os.ReadFile(filepath.Join(dir, "spec.md"))
	if err != nil {
		t.Fatal(err)
	}
	tables := specTables{Version: version}
	rpc, in := "", false
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		cells := strings.Split(line, "|")
		switch {
		case strings.HasPrefix(line, "#"):
			rpc = strings.TrimSuffix(strings.Trim(line, "# "), " Errors")
		case len(cells) > 4 && strings.TrimSpace(cells[1]) == "Condition":
			in = true
		case len(cells) < 5:
			in = false
		case in && !strings.HasPrefix(cells[1], "-"):
			_, code, _ := strings.Cut(strings.TrimSpace(cells[2]), " ")
			tables.Rows = append(tables.Rows, specRow{strings.TrimPrefix(rpc, "Error Scheme"), strings.TrimSpace(cells[1]),
				code})
		}
	}
	return tables
}

// TestTheRowsAreThoseOfTheSpecification: a newer specification adds its rows to the table.
func TestTheRowsAreThoseOfTheSpecification(t *testing.T) {
	want, err := json.MarshalIndent(specification(t), "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	same(t, filepath.Join("testdata", "errors.json"), append(want, '\n'))
}

// same compares a file with its expected content, and with -update writes it.
func same(t *testing.T, name string, want []byte) {
	t.Helper()
	if flag.Lookup(updateFlag).Value.String() == "true" {
		if err := os.WriteFile(name, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(name); err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s is not what it should be (%v): look at it, then run go test ./pkg/driver -update", name, err)
	}
}

func rowsOfSpec(t *testing.T) []specRow {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "errors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var tables specTables
	if err := json.Unmarshal(text, &tables); err != nil {
		t.Fatal(err)
	}
	if len(tables.Rows) < 60 {
		t.Fatalf("only %d rows", len(tables.Rows))
	}
	return tables.Rows
}

// condition returns the Kind of the failure that a row's condition describes. It tries the RPC's own wording first, and
// then the common one.
func condition(r specRow) (backends.Kind, bool) {
	own := map[string]backends.Kind{
		"CreateVolume/Source incompatible or not supported":                   backends.Unsupported,
		"DeleteSnapshot/Snapshot is part of a group":                          backends.Invalid,
		"ControllerExpandVolume/Exceeds capabilities":                         backends.Invalid,
		"NodeExpandVolume/Exceeds capabilities":                               backends.Invalid,
		"NodeStageVolume/Exceeds capabilities":                                backends.Unsupported,
		"NodePublishVolume/Exceeds capabilities":                              backends.Unsupported,
		"NodePublishVolume/Staging target path not set":                       backends.Unsupported,
		"CreateVolumeGroupSnapshot/Cannot snapshot multiple volumes together": backends.InUse,
		"/Call not implemented":                                               backends.Unsupported,
	}
	if kind, ok := own[r.RPC+"/"+r.Condition]; ok {
		return kind, true
	}
	for _, c := range []struct {
		words string
		kind  backends.Kind
	}{
		{"does not exist", backends.NotFound}, {"is incompatible", backends.Exists}, {"in use", backends.InUse},
		{"to another node", backends.InUse}, {"Unable to provision", backends.Exhausted}, {"Not enough", backends.Exhausted},
		{"Max volumes", backends.Exhausted}, {"Unsupported", backends.OutOfRange}, {"pending", backends.Busy},
		{"starting_token", backends.Busy}, {"list mismatch", backends.Invalid},
		{"Parameters not supported", backends.Invalid},
		{"Missing required field", backends.Invalid}, {"Invalid or unsupported field", backends.Invalid},
		{"Permission denied", backends.Denied},
	} {
		if strings.Contains(r.Condition, c.words) {
			return c.kind, true
		}
	}
	return 0, false
}

// without has the rows that this driver does not need, each with the reason.
func without() map[string]string {
	return map[string]string{
		"Probe/Plugin not healthy":          "Probe answers ready or not in its response",
		"Probe/Missing required dependency": "a process that lacks one does not start",
		"/Not authenticated":                "no call carries secrets that authenticate",
		"GetMetadataAllocated/*":            "the service is not offered",
		"GetMetadataDelta/*":                "the service is not offered",
	}
}

// deviations are the codes of the specification's rows that the driver does not follow, on purpose: answers.go and
// docs/design/014-answers.md give the reasons.
func deviations() map[string]codes.Code {
	return map[string]codes.Code{
		"ControllerExpandVolume/Volume in use":                                codes.Internal,
		"CreateSnapshot/Not enough resources to create snapshot":              codes.OutOfRange,
		"CreateVolumeGroupSnapshot/Not enough space to create group snapshot": codes.OutOfRange,
		"NodeStageVolume/Volume published but is incompatible":                codes.Unavailable,
	}
}

// TestEveryRowOfTheSpecification compares the answers of calls that fail as a row describes with the specification's
// own error tables, except for deviations. backendtest checks that a backend fails with that Kind.
func TestEveryRowOfTheSpecification(t *testing.T) {
	used := map[string]bool{}
	for _, r := range rowsOfSpec(t) {
		t.Run(r.RPC+"/"+r.Condition, func(t *testing.T) {
			for _, key := range []string{r.RPC + "/" + r.Condition, r.RPC + "/*"} {
				if why := without()[key]; why != "" {
					used[key] = true
					return
				}
			}
			kind, known := condition(r)
			if !known {
				t.Fatal("the table has no Kind for this condition")
			}
			info := &grpc.UnaryServerInfo{FullMethod: "/csi.v1.Controller/" + r.RPC}
			_, err := translate(newAnswers())(t.Context(), nil, info, func(context.Context, any) (any, error) {
				return nil, backends.Errorf(kind, "as a backend says: %w", errors.New(r.Condition))
			})
			want := r.Code
			if instead, ok := deviations()[r.RPC+"/"+r.Condition]; ok {
				used[r.RPC+"/"+r.Condition] = true
				if want = screaming(instead); want == r.Code {
					t.Errorf("%s is what the specification says: this is no deviation", want)
				}
			}
			if got := screaming(status.Code(err)); got != want {
				t.Errorf("%s is answered %s, want %s; the specification says %s", kind, got, want, r.Code)
			}
		})
	}
	for key := range without() {
		if !used[key] {
			t.Errorf("there is no row %s", key)
		}
	}
	for key := range deviations() {
		if !used[key] {
			t.Errorf("there is no row %s", key)
		}
	}
}

// screaming returns a code as the specification spells it.
func screaming(code codes.Code) string {
	var b strings.Builder
	for i, r := range code.String() {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}

// caller is a sidecar and its reaction to codes.
type caller struct {
	name, function string
	open           []codes.Code          // not final: it retries, and remembers that something may exist
	final          string                // its reaction to any other code
	marks          map[codes.Code]string // except for these
	changes        bool                  // its calls create nothing: the changed object keeps its name and handle
	calls          []string              // RPCs that create, change or take down something
}

func callers() []caller {
	const (
		change     = "retry, the request may change"
		infeasible = "mark infeasible, the request may change"
		never      = "mark infeasible: never again for this size"
	)
	common := []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Aborted}
	more := append(slices.Clone(common), codes.ResourceExhausted)
	return append([]caller{
		{name: "csi-provisioner 6.3.0", function: "pkg/controller/controller.go checkError", open: common, final: "forget",
			marks: map[codes.Code]string{codes.ResourceExhausted: "forget, mark for another node"},
			calls: []string{"CreateVolume"}},
		{name: "csi-attacher 4.12.0", function: "pkg/attacher/attacher.go isFinalError", open: more, final: "retry",
			calls: []string{"ControllerPublishVolume"}},
		{name: "csi-snapshotter 8.6.0", function: "pkg/sidecar-controller/snapshot_controller.go isCSIFinalError", open: more,
			final: "forget", calls: []string{"CreateSnapshot", "CreateVolumeGroupSnapshot"}},
		{name: "csi-resizer 2.2.0", function: "pkg/util/util.go IsFinalError, IsInfeasibleError", open: more, final: change,
			changes: true, marks: map[codes.Code]string{
				codes.InvalidArgument: infeasible, codes.OutOfRange: infeasible, codes.NotFound: infeasible,
				codes.FailedPrecondition: "mark: not while a pod uses it",
			},
			calls: []string{"ControllerExpandVolume"}},
		{name: "csi-resizer 2.2.0", function: "pkg/modifycontroller/modify_volume.go controllerModifyVolumeWithTarget",
			open: more, final: change, changes: true, marks: map[codes.Code]string{codes.InvalidArgument: infeasible},
			calls: []string{"ControllerModifyVolume"}},
		{name: "kubelet 1.36.3", function: "pkg/volume/csi/csi_client.go isFinalError", open: more, final: "forget",
			calls: []string{"NodeStageVolume", "NodePublishVolume"}},
		{name: "kubelet 1.36.3", function: "pkg/volume/csi/expander.go isInfeasibleError, inUseError", open: more,
			final: change, changes: true, marks: map[codes.Code]string{
				codes.InvalidArgument: never, codes.OutOfRange: never, codes.NotFound: never,
				codes.FailedPrecondition: "mark: not again while on this node",
			},
			calls: []string{"NodeExpandVolume"}},
	}, takingDown()...)
}

// callerOf returns the sidecar that makes a call.
func callerOf(t *testing.T, rpc string) caller {
	t.Helper()
	all := callers()
	i := slices.IndexFunc(all, func(c caller) bool { return slices.Contains(c.calls, rpc) })
	if i < 0 {
		t.Fatalf("nobody calls %s", rpc)
	}
	return all[i]
}

// TestTheSidecarsAreThoseOfTheCluster: the reaction of a newer sidecar or kubelet must be read in its source.
func TestTheSidecarsAreThoseOfTheCluster(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "tests", "e2e", "cluster", "tools", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range callers() {
		name, version, _ := strings.Cut(c.name, " ")
		module := "k8s.io/kubernetes"
		if sidecar, ok := strings.CutPrefix(name, "csi-"); ok {
			major, _, _ := strings.Cut(version, ".")
			module = "github.com/kubernetes-csi/external-" + sidecar + "/v" + major
		}
		if !strings.Contains(string(text), "\t"+module+" v"+version+"\n") {
			t.Errorf("the cluster does not run %s %s: read the source of its version again, %s", module, version, c.function)
		}
	}
}

// mayLeave returns the Kinds of failures after which the requested thing may exist. A staging that fails with Exists
// proves that the volume is staged, in another way. A publication may fail so, too. But while the volume shows at a
// target, NodeUnstageVolume refuses, and nothing is lost.
func mayLeave(rpc string) []backends.Kind {
	kinds := []backends.Kind{backends.Busy, backends.Unavailable, backends.Unusable}
	if rpc == "NodeStageVolume" {
		kinds = append(kinds, backends.Exists)
	}
	return kinds
}

// TestNoCellLeaks: after a failure in which something may exist, no sidecar may forget it. Changing a volume leaks
// nothing: the volume keeps its name and handle, and the next call finds its size or class.
func TestNoCellLeaks(t *testing.T) {
	table := newAnswers()
	for _, c := range callers() {
		for _, rpc := range c.calls {
			codes := map[string]codes.Code{}
			for _, kind := range mayLeave(rpc) {
				codes[kind.String()] = table.of(rpc, kind).code
			}
			if !c.changes {
				codes["unknown"] = table.of(rpc, backends.Unknown).code
				codes["a Kind that nobody knows"] = table.of(rpc, backends.Kind(99)).code
				codes["an error without a Kind"] = table.codeOf(rpc, errors.New("nobody knows why"))
			}
			for what, code := range codes {
				if !slices.Contains(c.open, code) {
					t.Errorf("%s: %s becomes %s, after which %s forgets", rpc, what, code, c.name)
				}
			}
		}
	}
}

// refusals returns the Kinds for which the contract guarantees that the request had no effect.
func refusals() []backends.Kind {
	return []backends.Kind{backends.Invalid, backends.NotFound, backends.Exists, backends.OutOfRange, backends.Exhausted,
		backends.InUse, backends.Denied, backends.Unsupported}
}

// TestAClaimCanBeLowered: the answer for a size or class that cannot be had must be final for csi-resizer, and not
// FAILED_PRECONDITION.
func TestAClaimCanBeLowered(t *testing.T) {
	for _, rpc := range []string{"ControllerExpandVolume", "ControllerModifyVolume"} {
		resizer := callerOf(t, rpc)
		for _, kind := range append(refusals(), backends.Unknown) {
			if code := newAnswers().of(rpc, kind).code; slices.Contains(resizer.open, code) || code == codes.FailedPrecondition {
				t.Errorf("%s, %s becomes %s, after which a claim cannot be changed", rpc, kind, code)
			}
		}
	}
}

// TestARefusedSnapshotCanBeDeleted: until the last call has a final answer, csi-snapshotter does not delete a
// VolumeSnapshotContent, and it keeps the source claim. So a refusal without effect must be final.
func TestARefusedSnapshotCanBeDeleted(t *testing.T) {
	for _, rpc := range []string{"CreateSnapshot", "CreateVolumeGroupSnapshot"} {
		snapshotter := callerOf(t, rpc)
		for _, kind := range refusals() {
			if code := newAnswers().of(rpc, kind).code; slices.Contains(snapshotter.open, code) {
				t.Errorf("%s, %s becomes %s, after which %s lets nobody delete the snapshot", rpc, kind, code,
					snapshotter.name)
			}
		}
	}
}

// TestWhatPassesIsNotInfeasible: the kubelet never retries a size that it has marked, on a node or at all. So it must
// not mark a failure that may pass without a request for another size.
func TestWhatPassesIsNotInfeasible(t *testing.T) {
	const rpc = "NodeExpandVolume"
	table, kubelet := newAnswers(), callerOf(t, rpc)
	passes := map[string]codes.Code{"an error without a Kind": table.codeOf(rpc, errors.New("nobody knows why"))}
	for _, kind := range []backends.Kind{backends.Unknown, backends.Exists, backends.Exhausted, backends.Busy,
		backends.Denied, backends.Unavailable, backends.Unusable, backends.Kind(99)} {
		passes[kind.String()] = table.of(rpc, kind).code
	}
	for what, code := range passes {
		if mark := kubelet.marks[code]; mark != "" {
			t.Errorf("%s becomes %s, after which %s does this: %s", what, code, kubelet.name, mark)
		}
	}
}

// TestAPanicLeavesTheWayOut: nobody knows what a panic left behind. A creation is retried, and a size or class that
// makes a backend panic can be taken back.
func TestAPanicLeavesTheWayOut(t *testing.T) {
	panics := func(context.Context, any) (any, error) { panic("out of cheese") }
	for _, c := range callers() {
		for _, rpc := range c.calls {
			info := &grpc.UnaryServerInfo{FullMethod: "/csi.v1.Controller/" + rpc}
			_, err := translate(newAnswers())(t.Context(), nil, info, func(ctx context.Context, request any) (any, error) {
				return rescue(newLogLimits())(ctx, request, info, panics)
			})
			code := status.Code(err)
			if slices.Contains(c.open, code) == c.changes || c.marks[code] != "" {
				t.Errorf("a panic in %s becomes %s for %s", rpc, code, c.name)
			}
		}
	}
}

// TestThePageShowsTheTables compares docs/design/014-answers.md with the tables.
func TestThePageShowsTheTables(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "design", "014-answers.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const mark = "<!-- the tables: written by go test ./pkg/driver -update -->\n"
	head, _, found := strings.Cut(string(text), mark)
	if !found {
		t.Fatalf("%s lacks the line %q", page, mark)
	}
	same(t, page, []byte(head+mark+"\n"+cellTable()+"\n"+callerTable()))
}

func kinds() (all []backends.Kind) {
	for kind := backends.Unknown; kind <= backends.Unusable; kind++ {
		all = append(all, kind)
	}
	return all
}

func cellTable() string {
	var b strings.Builder
	b.WriteString("## From Kinds to codes\n\n| RPC | Kind | code | source |\n|---|---|---|---|\n")
	write := func(rpc string, cells row) {
		for _, kind := range kinds() {
			if cell, ok := cells[kind]; ok {
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", rpc, kind, screaming(cell.code), cell.source)
			}
		}
	}
	write("every other", general())
	own := particular()
	for _, rpc := range slices.Sorted(maps.Keys(own)) {
		write(rpc, own[rpc])
	}
	return b.String()
}

func callerTable() string {
	var b strings.Builder
	b.WriteString("## From codes to what comes next\n\n| code |")
	for _, c := range callers() {
		fmt.Fprintf(&b, " %s |", c.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(callers())) + "\n| of |")
	for _, c := range callers() {
		fmt.Fprintf(&b, " %s |", strings.Join(c.calls, ", "))
	}
	b.WriteString("\n| decided in |")
	for _, c := range callers() {
		fmt.Fprintf(&b, " %s |", c.function)
	}
	b.WriteString("\n")
	for _, code := range allCodes() {
		fmt.Fprintf(&b, "| %s |", screaming(code))
		for _, c := range callers() {
			fmt.Fprintf(&b, " %s |", c.next(code))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// next describes the sidecar's reaction: it retries open failures, forgets final ones, or marks the object.
func (c caller) next(code codes.Code) string {
	if mark := c.marks[code]; mark != "" {
		return mark
	}
	if slices.Contains(c.open, code) {
		return "retry"
	}
	return c.final
}
