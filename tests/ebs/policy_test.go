package ebs

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/pkg/base64url"
	"github.com/stowage-csi/stowage/tests/cloud/iam"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// policyOf reads one of the shipped policies, filled in for a cluster as docs/guides/ebs.md says.
func policyOf(t *testing.T, name, cluster string) iam.Policy {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy/aws", name+"-policy.json"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := iam.Parse(bytes.ReplaceAll(text, []byte("CLUSTER"), []byte(cluster)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

// side is the controller or the nodes: a separate principal, with the rights that its requests needed.
type side struct {
	policy iam.Policy
	guards []*iam.Guard
}

func (s *side) guard(r *region.Region, next iam.Client) *iam.Guard {
	g := &iam.Guard{Policy: s.policy, Tags: tagsIn(r), Next: next}
	s.guards = append(s.guards, g)
	return g
}

func (s *side) seen() (list []iam.Access) {
	for _, g := range s.guards {
		list = append(list, g.Seen()...)
	}
	return list
}

func tagsIn(r *region.Region) iam.Tags {
	return func(id string) map[string]string {
		for _, v := range r.Server.Volumes() {
			if v.ID == id {
				return v.Tags
			}
		}
		if strings.HasPrefix(id, "i-") {
			return r.Server.InstanceTags(id)
		}
		return r.Server.Snapshots()[id]
	}
}

// apart opens controller and node as the two processes that they are in a cluster, each with its own policy.
type apart struct {
	mu               sync.Mutex
	controller, node side
	calls            map[string]int
}

func (a *apart) harness() backendtest.Harness {
	var latest *region.Region // The checks run one after the other.
	definition := ebs.Definition()
	open := definition.Open
	definition.Open = func(ctx context.Context, o backends.Options) (*backends.Instance, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		instance := &backends.Instance{}
		for s, keep := range map[*side]func(*backends.Instance){
			&a.controller: func(i *backends.Instance) { instance.Controller = i.Controller },
			&a.node:       func(i *backends.Instance) { instance.Node = i.Node },
		} {
			own, config := o, *o.Config.(*ebs.Config)
			config.AWS.HTTPClient = s.guard(latest, config.AWS.HTTPClient)
			own.Config = &config
			one, err := open(ctx, own)
			if err != nil {
				return nil, err
			}
			keep(one)
		}
		return instance, nil
	}
	return region.Harness(definition, func(tb testing.TB) *region.Region {
		r := region.New(tb, region.Quick(), 0)
		latest = r
		tb.Cleanup(func() {
			for action, n := range r.Server.Calls() {
				a.calls[action] += n
			}
		})
		return r
	})
}

// wishes takes a snapshot with all options of a class. The suite cannot do this: it deletes each of its snapshots,
// which a lock forbids.
func (a *apart) wishes(t *testing.T) {
	config := region.Quick()
	config.MaxFastRestores = 1
	r := region.New(t, config, 0)
	d := ebs.Definition()
	options := backends.Options{Driver: "ebs.csi.stowage.dev", Config: d.NewConfig(), Log: slog.New(slog.DiscardHandler)}
	r.Configure(&options)
	c, _ := options.Config.(*ebs.Config) // the type that NewConfig returns
	c.AWS.HTTPClient = a.controller.guard(r, c.AWS.HTTPClient)
	instance, err := d.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	v, err := instance.Controller.Create(t.Context(), region.Spec("pvc"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = backends.Resolve(instance.Controller, instance.Node).Snapshot.CreateSnapshot(t.Context(),
		backends.SnapshotSpec{
			Name: "snap", Volume: v.Handle, Parameters: &ebs.SnapshotParameters{FastZones: config.Zones[0],
				LockMode: "governance", LockDays: 1},
		})
	if err != nil {
		t.Error(err)
	}
	for action, n := range r.Server.Calls() {
		a.calls[action] += n
	}
}

// TestPolicy runs the conformance suite with exactly the rights that deploy/aws gives to the controller and to the
// nodes. The policies allow exactly the requests of the code: each action of each statement must have been needed.
func TestPolicy(t *testing.T) {
	cluster := "base64:" + base64url.Encode([]byte("cluster *1")) // the region's drivers' cluster, as in a tag
	a := &apart{
		controller: side{policy: policyOf(t, "controller", cluster)}, node: side{policy: policyOf(t, "node", cluster)},
		calls: map[string]int{},
	}
	t.Run("suite", func(t *testing.T) { backendtest.Run(t, a.harness()) })
	t.Run("snapshots as their class wants them", a.wishes)
	if t.Failed() {
		return
	}
	compare(t, "pkg/backends/ebs has the requests, and EC2 was sent", sources(t), slices.Sorted(maps.Keys(a.calls)))
	for name, s := range map[string]*side{"controller": &a.controller, "node": &a.node} {
		compare(t, "the policy of the "+name+" has, and it asked for", granted(s.policy), wanted(s.seen()))
		for _, access := range s.seen() {
			if !s.policy.Allows(access) {
				t.Errorf("the %s was refused %s on %s with %v", name, access.Action, access.Resource, access.Context)
			}
		}
		checkLeast(t, name, s.policy, s.seen())
	}
}

// compare reports the differences between two lists.
func compare(t *testing.T, what string, left, right []string) {
	t.Helper()
	if len(left) == 0 || !slices.Equal(left, right) {
		t.Errorf("%s\n%q\n%q", what, left, right)
	}
}

// granted returns the actions in a policy.
func granted(p iam.Policy) []string {
	var list []string
	for _, s := range p.Statement {
		list = append(list, s.Action...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func wanted(seen []iam.Access) []string {
	var list []string
	for _, access := range seen {
		list = append(list, access.Action)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// checkLeast removes each action on each resource from each statement. Each time, a right that was needed must no
// longer be allowed.
func checkLeast(t *testing.T, name string, p iam.Policy, seen []iam.Access) {
	t.Helper()
	for i, s := range p.Statement {
		for _, action := range s.Action {
			for _, resource := range s.Resource {
				less := p
				less.Statement = slices.Delete(slices.Clone(p.Statement), i, i+1)
				for _, part := range parts(s) {
					if part.Action[0] != action || part.Resource[0] != resource {
						less.Statement = append(less.Statement, part)
					}
				}
				if !slices.ContainsFunc(seen, func(access iam.Access) bool { return !less.Allows(access) }) {
					t.Errorf("the policy of the %s: nothing needs %s on %s in %q", name, action, resource, s.Sid)
				}
			}
		}
	}
}

// parts splits a statement into one for each of its actions on each of its resources.
func parts(s iam.Statement) (list []iam.Statement) {
	for _, action := range s.Action {
		for _, resource := range s.Resource {
			list = append(list, iam.Statement{Sid: s.Sid, Effect: s.Effect, Action: iam.Texts{action},
				Resource: iam.Texts{resource}, Condition: s.Condition})
		}
	}
	return list
}

// sources returns the actions that the backend's code can request, whether or not a test sends the request.
func sources(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../pkg/backends/ebs/*.go")
	if err != nil {
		t.Fatal(err)
	}
	actions := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for node := range ast.Preorder(tree) {
			selector, ok := node.(*ast.SelectorExpr)
			if !ok || fmt.Sprint(selector.X) != "ec2" {
				continue
			}
			if action, isInput := strings.CutSuffix(selector.Sel.Name, "Input"); isInput {
				actions[action] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(actions))
}

// TestPolicyRefuses checks that a compromised controller can neither act on resources that are not the driver's, nor
// make them the driver's.
func TestPolicyRefuses(t *testing.T) {
	const (
		owner  = "ebs.csi.stowage.dev/cluster"
		volume = "arn:aws:ec2:region-1:111122223333:volume/"
		snap   = "arn:aws:ec2:region-1:111122223333:snapshot/"
	)
	p := policyOf(t, "controller", "production")
	own := map[string][]string{"ec2:ResourceTag/" + owner: {"production"}}
	theirs := map[string][]string{"ec2:ResourceTag/" + owner: {"staging"}}
	with := func(pairs ...string) map[string][]string {
		context := maps.Clone(own)
		for pair := range slices.Chunk(pairs, 2) {
			context[pair[0]] = []string{pair[1]}
		}
		return context
	}
	for what, access := range map[string]iam.Access{
		"delete another's volume":            {Action: "ec2:DeleteVolume", Resource: volume + "vol-1"},
		"attach another's volume":            {Action: "ec2:AttachVolume", Resource: volume + "vol-1"},
		"detach another's volume":            {Action: "ec2:DetachVolume", Resource: volume + "vol-1"},
		"change another's volume":            {Action: "ec2:ModifyVolume", Resource: volume + "vol-1"},
		"copy another's volume":              {Action: "ec2:CopyVolumes", Resource: volume + "vol-1"},
		"delete a volume of another cluster": {Action: "ec2:DeleteVolume", Resource: volume + "vol-1", Context: theirs},
		"attach a volume of another cluster": {Action: "ec2:AttachVolume", Resource: volume + "vol-1", Context: theirs},
		"restore a snapshot of another":      {Action: "ec2:CreateVolume", Resource: snap + "snap-1", Context: theirs},
		"take a snapshot of it":              {Action: "ec2:CreateSnapshot", Resource: volume + "vol-1"},
		"delete another's snapshot":          {Action: "ec2:DeleteSnapshot", Resource: snap + "snap-1"},
		"restore another's snapshot":         {Action: "ec2:CreateVolume", Resource: snap + "snap-1"},
		"make a volume without an owner":     {Action: "ec2:CreateVolume", Resource: volume + "*"},
		"take a snapshot without one":        {Action: "ec2:CreateSnapshot", Resource: snap + "*"},
		"make another's volume its own": {Action: "ec2:CreateTags", Resource: volume + "vol-1",
			Context: map[string][]string{"aws:TagKeys": {owner}, "aws:RequestTag/" + owner: {"production"}}},
		"probe another's volume by a tag": {Action: "ec2:CreateTags", Resource: volume + "vol-1",
			Context: map[string][]string{"aws:TagKeys": {"ebs.csi.stowage.dev/probe"}}},
		"give its own to another": {Action: "ec2:CreateTags", Resource: volume + "vol-1",
			Context: with("aws:TagKeys", owner)},
		"take the owner away": {Action: "ec2:DeleteTags", Resource: volume + "vol-1",
			Context: with("aws:TagKeys", owner)},
		"take all tags away": {Action: "ec2:DeleteTags", Resource: volume + "vol-1", Context: own},
		"tag a snapshot later": {Action: "ec2:CreateTags", Resource: snap + "snap-1",
			Context: with("aws:TagKeys", "ebs.csi.stowage.dev/probe")},
		"start an instance": {Action: "ec2:RunInstances", Resource: "*"},
		"share a snapshot": {Action: "ec2:ModifySnapshotAttribute", Resource: snap + "snap-1",
			Context: own},
	} {
		if p.Allows(access) {
			t.Errorf("the controller may %s", what)
		}
	}
	if n := policyOf(t, "node", "production"); len(granted(n)) != 2 ||
		slices.ContainsFunc(granted(n), func(a string) bool { return !strings.HasPrefix(a, "ec2:Describe") }) {
		t.Errorf("nodes may %q", granted(n))
	}
}

// TestPolicyIsOfOneCluster checks that the controller's rights to one cluster's resources do not apply to another's.
func TestPolicyIsOfOneCluster(t *testing.T) {
	p := policyOf(t, "controller", "production")
	for _, resource := range []string{"volume/vol-1", "volume/*", "snapshot/snap-1", "snapshot/*"} {
		for _, action := range granted(p) {
			tags := map[string][]string{"ec2:ResourceTag/ebs.csi.stowage.dev/cluster": {"staging"},
				"aws:RequestTag/ebs.csi.stowage.dev/cluster": {"staging"}}
			access := iam.Access{Action: action, Resource: "arn:aws:ec2:region-1:111122223333:" + resource, Context: tags}
			if !strings.HasPrefix(action, "ec2:Describe") && p.Allows(access) {
				t.Errorf("the controller of one cluster may %s on %s of another", action, resource)
			}
		}
	}
}

// TestKeyPolicy checks the additional rights for encryption with a customer's key: only that key, and only through EC2.
func TestKeyPolicy(t *testing.T) {
	for _, s := range policyOf(t, "kms", "").Statement {
		for _, action := range s.Action {
			if !strings.HasPrefix(action, "kms:") {
				t.Errorf("%s: %s is no right in KMS", s.Sid, action)
			}
		}
		if len(s.Resource) != 1 || !strings.HasPrefix(s.Resource[0], "arn:aws:kms:") || strings.Contains(s.Resource[0], "*") {
			t.Errorf("%s: %q is not one key", s.Sid, s.Resource)
		}
		// China has no suffix of its own here: "Use the .amazonaws.com suffix of the AWS KMS ViaService name in all AWS
		// partitions" (kms:ViaService, AWS KMS Developer Guide).
		if !slices.Equal(s.Condition["StringLike"]["kms:ViaService"], iam.Texts{"ec2.*.amazonaws.com"}) {
			t.Errorf("%s: the key can be used otherwise than by EC2", s.Sid)
		}
		if slices.Contains(s.Action, "kms:CreateGrant") &&
			!slices.Equal(s.Condition["Bool"]["kms:GrantIsForAWSResource"], iam.Texts{"true"}) {
			t.Errorf("%s: anybody can be granted the use of the key", s.Sid)
		}
	}
}
