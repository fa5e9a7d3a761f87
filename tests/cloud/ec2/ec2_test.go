package ec2_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	fake "github.com/stowage-csi/stowage/tests/cloud/ec2"
	"github.com/stowage-csi/stowage/tests/cloud/wire"
)

const tick = 20 * time.Millisecond

func config() fake.Config {
	return fake.Config{
		Zones:  []string{"zone-a", "zone-b"},
		Create: tick, Delete: tick, Attach: tick, Detach: tick, Modify: tick, Optimize: tick, Snapshot: tick,
		Types: map[string]fake.InstanceType{"small": {MaxAttachments: 4, Shared: true}, "large": {MaxAttachments: 27}},
	}
}

// cloud is a server and the real client, in simulated time: each state can be observed on any machine.
type cloud struct {
	testing.TB
	*ec2.Client
	server   *fake.Server
	instance []string // two small ones in zone-a, one large one in zone-b
}

func start(tb testing.TB, config fake.Config) *cloud {
	tb.Helper()
	server := fake.New(config)
	c := &cloud{TB: tb, server: server}
	for i, kind := range []string{"small", "small", "large"} {
		id := server.NewInstanceID()
		server.AddInstance(fake.Instance{ID: id, Type: kind, Zone: config.Zones[i/2], Interfaces: 2})
		c.instance = append(c.instance, id)
	}
	c.Client = ec2.New(ec2.Options{
		Region: "region-1", BaseEndpoint: aws.String("http://ec2.test"),
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""), RetryMaxAttempts: 1,
		HTTPClient: &http.Client{Transport: wire.Serve(tb, server)},
	})
	return c
}

// code returns the API's code of an error, or an empty string for nil.
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	if err != nil {
		return "no API error: " + err.Error()
	}
	return ""
}

func (c *cloud) fails(what, want string, err error) {
	c.Helper()
	if have := code(err); have != want {
		c.Errorf("%s: got %q, want %q (%v)", what, have, want, err)
	}
}

func (c *cloud) create(edit func(*ec2.CreateVolumeInput)) (*ec2.CreateVolumeOutput, error) {
	input := &ec2.CreateVolumeInput{AvailabilityZone: aws.String("zone-a"), Size: aws.Int32(4),
		VolumeType: types.VolumeTypeGp3}
	if edit != nil {
		edit(input)
	}
	return c.CreateVolume(c.Context(), input)
}

// volume creates a volume, and waits until it is available.
func (c *cloud) volume(edit func(*ec2.CreateVolumeInput)) string {
	c.Helper()
	out, err := c.create(edit)
	if err != nil {
		c.Fatal(err)
	}
	c.until("available", *out.VolumeId)
	return *out.VolumeId
}

func (c *cloud) describe(id string) (types.Volume, error) {
	out, err := c.DescribeVolumes(c.Context(), &ec2.DescribeVolumesInput{VolumeIds: []string{id}})
	if err != nil {
		return types.Volume{}, err
	}
	return out.Volumes[0], nil
}

// until waits until a volume has the state.
func (c *cloud) until(state types.VolumeState, id string) types.Volume {
	c.Helper()
	return c.when(string(state), id, func(v types.Volume) bool { return v.State == state })
}

func (c *cloud) when(what, id string, so func(types.Volume) bool) types.Volume {
	c.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-time.After(tick / 4) {
		v, err := c.describe(id)
		if err != nil {
			c.Fatal(err)
		}
		if so(v) {
			return v
		}
	}
	c.Fatalf("volume %s is still not %s", id, what)
	return types.Volume{}
}

func (c *cloud) attach(id, instance, device string) error {
	_, err := c.AttachVolume(c.Context(), &ec2.AttachVolumeInput{VolumeId: &id, InstanceId: &instance, Device: &device})
	return err
}

func (c *cloud) detach(id, instance string) error {
	_, err := c.DetachVolume(c.Context(), &ec2.DetachVolumeInput{VolumeId: &id, InstanceId: aws.String(instance)})
	return err
}

func TestVolumeComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, config())
		out, err := c.create(func(in *ec2.CreateVolumeInput) {
			in.TagSpecifications = []types.TagSpecification{{ResourceType: types.ResourceTypeVolume,
				Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v & <w>")}}}}
		})
		if err != nil || out.State != types.VolumeStateCreating || len(*out.VolumeId) != 21 ||
			time.Since(*out.CreateTime) > time.Minute {
			t.Fatalf("got %+v, %v", out, err)
		}
		_, err = c.DeleteVolume(t.Context(), &ec2.DeleteVolumeInput{VolumeId: out.VolumeId})
		c.fails("deleting it while it is made", "IncorrectState", err)
		v := c.until("available", *out.VolumeId)
		if *v.Size != 4 || *v.Iops != 3000 || *v.Throughput != 125 || *v.AvailabilityZone != "zone-a" || len(v.Tags) != 1 ||
			*v.Tags[0].Value != "v & <w>" {
			t.Errorf("the volume is %+v", v)
		}
		if _, err = c.DeleteVolume(t.Context(), &ec2.DeleteVolumeInput{VolumeId: out.VolumeId}); err != nil {
			t.Fatal(err)
		}
		if v, err := c.describe(*out.VolumeId); err != nil || v.State != types.VolumeStateDeleting {
			t.Errorf("deleted, it is %+v, %v", v.State, err)
		}
		<-time.After(2 * tick)
		_, err = c.describe(*out.VolumeId)
		c.fails("describing it then", "InvalidVolume.NotFound", err)
		_, err = c.DeleteVolume(t.Context(), &ec2.DeleteVolumeInput{VolumeId: out.VolumeId})
		c.fails("deleting it twice", "InvalidVolume.NotFound", err)
	})
}

func TestParametersAreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, config())
		for name, row := range map[string]struct {
			edit func(*ec2.CreateVolumeInput)
			want string
		}{
			"an unknown type": {func(in *ec2.CreateVolumeInput) { in.VolumeType = "tape" }, "InvalidParameterValue"},
			"a zone that is not there": {func(in *ec2.CreateVolumeInput) { in.AvailabilityZone = aws.String("zone-z") },
				"InvalidZone.NotFound"},
			"no size": {func(in *ec2.CreateVolumeInput) { in.Size = nil }, "MissingParameter"},
			"too large": {func(in *ec2.CreateVolumeInput) { in.Size = aws.Int32(65537) },
				"InvalidParameterValue"},
			"iops for gp2": {func(in *ec2.CreateVolumeInput) { in.VolumeType, in.Iops = "gp2", aws.Int32(100) },
				"InvalidParameterCombination"},
			"no iops for io2": {func(in *ec2.CreateVolumeInput) { in.VolumeType = "io2" }, "MissingParameter"},
			"gp3 with few iops": {func(in *ec2.CreateVolumeInput) { in.Iops = aws.Int32(2999) },
				"InvalidParameterValue"},
			"gp3 with too many per GiB": {func(in *ec2.CreateVolumeInput) { in.Iops, in.Size = aws.Int32(3501), aws.Int32(7) },
				"InvalidParameterValue"},
			"gp3 with just enough iops": {func(in *ec2.CreateVolumeInput) { in.Iops, in.Size = aws.Int32(3500), aws.Int32(7) },
				""},
			"too much throughput": {func(in *ec2.CreateVolumeInput) { in.Throughput = aws.Int32(751) },
				"InvalidParameterValue"},
			"throughput for io2": {func(in *ec2.CreateVolumeInput) {
				in.VolumeType, in.Iops, in.Throughput = "io2", aws.Int32(100), aws.Int32(125)
			}, "InvalidParameterCombination"},
			"a small st1": {func(in *ec2.CreateVolumeInput) { in.VolumeType, in.Size = "st1", aws.Int32(124) },
				"InvalidParameterValue"},
			"Multi-Attach for gp3": {func(in *ec2.CreateVolumeInput) { in.MultiAttachEnabled = aws.Bool(true) },
				"InvalidParameterCombination"},
			"a key without encryption": {func(in *ec2.CreateVolumeInput) { in.KmsKeyId = aws.String("key") },
				"InvalidParameterDependency"},
			"a missing snapshot": {func(in *ec2.CreateVolumeInput) {
				in.SnapshotId = aws.String("snap-0123456789abcdef0")
			}, "InvalidSnapshot.NotFound"},
			"a malformed snapshot": {func(in *ec2.CreateVolumeInput) { in.SnapshotId = aws.String("snap-x") },
				"InvalidSnapshotID.Malformed"},
			"a parameter without a rule": {func(in *ec2.CreateVolumeInput) { in.OutpostArn = aws.String("arn") },
				"UnknownParameter"},
			"nothing, in a dry run": {func(in *ec2.CreateVolumeInput) { in.DryRun = aws.Bool(true) }, "DryRunOperation"},
			"tags of a wrong resource": {func(in *ec2.CreateVolumeInput) {
				in.TagSpecifications = []types.TagSpecification{{ResourceType: "snapshot",
					Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("")}}}}
			}, "InvalidParameterValue"},
			"a tag that is too long": {func(in *ec2.CreateVolumeInput) {
				in.TagSpecifications = []types.TagSpecification{{ResourceType: "volume",
					Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String(strings.Repeat("v", 257))}}}}
			}, "InvalidParameterValue"},
		} {
			_, err := c.create(row.edit)
			c.fails(name, row.want, err)
		}
		if n := len(c.server.Volumes()); n != 1 {
			t.Errorf("there are %d volumes, want the one whose parameters were right", n)
		}
		_, err := c.describe("vol-xyz")
		c.fails("a malformed ID", "InvalidVolumeID.Malformed", err)
	})
}

func TestClientTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, config())
		with := func(token string, size int32) (string, error) {
			out, err := c.create(func(in *ec2.CreateVolumeInput) { in.ClientToken, in.Size = &token, &size })
			if err != nil {
				return "", err
			}
			return *out.VolumeId, nil
		}
		first, err := with("one", 4)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := with("one", 4); err != nil || again != first {
			t.Errorf("with the same token: %q, %v; want %q", again, err, first)
		}
		if other, err := with("two", 4); err != nil || other == first {
			t.Errorf("with another token: %q, %v; want another volume", other, err)
		}
		_, mismatch := with("one", 5)
		c.fails("with other parameters", "IdempotentParameterMismatch", mismatch)
		c.until("available", first)
		if _, err = c.DeleteVolume(t.Context(), &ec2.DeleteVolumeInput{VolumeId: &first}); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * tick)
		if again, err := with("one", 4); err != nil || again != first || len(c.server.Volumes()) != 1 {
			t.Errorf("a token whose volume is gone: %q, %v, and %d volumes; want %q as ever", again, err,
				len(c.server.Volumes()), first)
		}
		_, failed := with("three", 70_000)
		c.fails("a request that was refused", "InvalidParameterValue", failed)
		if _, err := with("three", 4); err != nil {
			t.Errorf("its token in a request that is right: %v", err)
		}
	})
}

func TestQuotaComesBeforeTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, config())
		create := func() (*ec2.CreateVolumeOutput, error) {
			return c.create(func(in *ec2.CreateVolumeInput) { in.ClientToken = aws.String("one") })
		}
		c.server.SetQuota(1)
		first, err := create()
		if err != nil {
			t.Fatal(err)
		}
		c.fails("with the token of the volume that has filled the quota", "VolumeLimitExceeded", second(create()))
		c.server.SetQuota(2)
		if again, err := create(); err != nil || *again.VolumeId != *first.VolumeId {
			t.Errorf("with the token below the quota: %+v, %v; want %s", again, err, *first.VolumeId)
		}
	})
}

func TestAttachRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, config())
		v := c.volume(nil)
		c.fails("a missing instance", "InvalidInstanceID.NotFound", c.attach(v, "i-0123456789abcdef0", "/dev/xvdba"))
		c.fails("a missing volume", "InvalidVolume.NotFound", c.attach("vol-0123456789abcdef0", c.instance[0], "/dev/xvdba"))
		c.fails("another zone", "InvalidVolume.ZoneMismatch", c.attach(v, c.instance[2], "/dev/xvdba"))
		c.fails("an odd device", "InvalidParameterValue", c.attach(v, c.instance[0], "/dev/nvme1n1"))
		c.fails("the root disk's device", "InvalidParameterValue", c.attach(v, c.instance[0], "/dev/sda1"))
		c.server.SetUnfit(c.instance[0], true)
		c.fails("an instance that does not support it", "InvalidParameterValue", c.attach(v, c.instance[0], "/dev/xvdba"))
		c.server.SetUnfit(c.instance[0], false)
		c.fails("not attached", "IncorrectState", c.detach(v, c.instance[0]))
		c.fails("attaching", "", c.attach(v, c.instance[0], "/dev/xvdba"))
		c.fails("attaching it again", "VolumeInUse", c.attach(v, c.instance[0], "/dev/xvdba"))
		c.fails("attaching it elsewhere", "VolumeInUse", c.attach(v, c.instance[1], "/dev/xvdba"))
		c.when("attached", v, func(v types.Volume) bool {
			return v.State == "in-use" && v.Attachments[0].State == "attached" &&
				*v.Attachments[0].InstanceId == c.instance[0] && *v.Attachments[0].Device == "/dev/xvdba"
		})
		_, err := c.DeleteVolume(t.Context(), &ec2.DeleteVolumeInput{VolumeId: &v})
		c.fails("deleting it", "VolumeInUse", err)
		c.fails("detaching it elsewhere", "InvalidAttachment.NotFound", c.detach(v, c.instance[1]))
		w, x, y := c.volume(nil), c.volume(nil), c.volume(nil)
		c.fails("a device in use", "InvalidParameterValue", c.attach(w, c.instance[0], "/dev/xvdba"))
		c.fails("a second disk", "", c.attach(w, c.instance[0], "/dev/xvdbb"))
		c.fails("one disk more than four, with the root disk and a second interface", "AttachmentLimitExceeded",
			c.attach(x, c.instance[0], "/dev/xvdbc"))
		c.server.Stick("detaching", true)
		c.fails("detaching", "", c.detach(v, c.instance[0]))
		<-time.After(2 * tick)
		c.fails("detaching it again", "", c.detach(v, c.instance[0]))
		c.fails("attaching while one is detaching", "AttachmentLimitExceeded", c.attach(y, c.instance[0], "/dev/xvdbd"))
		c.server.Stick("detaching", false)
		c.until("available", v)
		c.fails("attaching it elsewhere then", "", c.attach(v, c.instance[1], "/dev/xvdba"))
		out, err := c.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: c.instance[:2]})
		if err != nil || len(out.Reservations) == 0 {
			t.Fatalf("describing the instances: %v", err)
		}
		for _, r := range out.Reservations {
			for _, i := range r.Instances {
				if len(i.BlockDeviceMappings) != 2 || len(i.NetworkInterfaces) != 2 || *i.Placement.AvailabilityZone != "zone-a" {
					t.Errorf("the instance is %+v", i)
				}
			}
		}
	})
}

func TestAttachmentWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := config()
		settings.Types["small"] = fake.InstanceType{MaxAttachments: 2, Shared: true, Lenient: true}
		c := start(t, settings)
		v := c.volume(nil)
		c.fails("attaching to an instance without room", "", c.attach(v, c.instance[0], "/dev/xvdba"))
		<-time.After(10 * tick)
		if have, err := c.describe(v); err != nil || have.Attachments[0].State != "attaching" {
			t.Errorf("it is %+v, %v; want one that is attaching", have, err)
		}
		c.fails("detaching it", "", c.detach(v, c.instance[0]))
		c.until("available", v)
	})
}

func TestMultiAttach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, config())
		v := c.volume(func(in *ec2.CreateVolumeInput) {
			in.VolumeType, in.Iops, in.MultiAttachEnabled = "io2", aws.Int32(100), aws.Bool(true)
		})
		for _, instance := range c.instance[:2] {
			c.fails("attaching to each", "", c.attach(v, instance, "/dev/xvdba"))
		}
		c.fails("attaching to one twice", "VolumeInUse", c.attach(v, c.instance[0], "/dev/xvdbb"))
		_, err := c.DetachVolume(t.Context(), &ec2.DetachVolumeInput{VolumeId: &v})
		c.fails("detaching from no instance in particular", "InvalidParameterCombination", err)
		c.fails("detaching from one", "", c.detach(v, c.instance[0]))
		c.when("attached once", v, func(v types.Volume) bool { return len(v.Attachments) == 1 && v.State == "in-use" })
	})
}

func TestModification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := config()
		settings.Cooldown = 300 * time.Millisecond
		c := start(t, settings)
		v := c.volume(nil)
		modify := func(edit func(in *ec2.ModifyVolumeInput)) error {
			in := &ec2.ModifyVolumeInput{VolumeId: &v}
			edit(in)
			_, err := c.ModifyVolume(t.Context(), in)
			return err
		}
		state := func() types.VolumeModificationState {
			out, err := c.DescribeVolumesModifications(t.Context(),
				&ec2.DescribeVolumesModificationsInput{VolumeIds: []string{v}})
			if err != nil || len(out.VolumesModifications) != 1 {
				t.Fatalf("describing the modification: %+v, %v", out, err)
			}
			return out.VolumesModifications[0].ModificationState
		}
		c.fails("smaller", "InvalidParameterValue", modify(func(in *ec2.ModifyVolumeInput) { in.Size = aws.Int32(3) }))
		c.fails("too many iops", "InvalidParameterValue",
			modify(func(in *ec2.ModifyVolumeInput) { in.Iops = aws.Int32(80_001) }))
		c.fails("larger and faster", "", modify(func(in *ec2.ModifyVolumeInput) {
			in.Size, in.Iops, in.Throughput = aws.Int32(10), aws.Int32(4000), aws.Int32(500)
		}))
		if before, _ := c.describe(v); *before.Size != 4 || state() != "modifying" {
			t.Errorf("at once it has %d GiB and is %s", *before.Size, state())
		}
		c.fails("again at once", "IncorrectModificationState",
			modify(func(in *ec2.ModifyVolumeInput) { in.Size = aws.Int32(11) }))
		after := c.when("larger", v, func(v types.Volume) bool { return *v.Size == 10 })
		if *after.Iops != 4000 || *after.Throughput != 500 {
			t.Errorf("modified, it is %+v", after)
		}
		for deadline := time.Now().Add(10 * time.Second); state() != "completed" && time.Now().Before(deadline); {
			<-time.After(tick / 2)
		}
		c.fails("again too soon", "VolumeModificationRateExceeded",
			modify(func(in *ec2.ModifyVolumeInput) { in.Size = aws.Int32(11) }))
		<-time.After(settings.Cooldown)
		c.fails("another type after a while", "", modify(func(in *ec2.ModifyVolumeInput) { in.VolumeType = "gp2" }))
		c.when("gp2", v, func(v types.Volume) bool { return v.VolumeType == "gp2" && *v.Size == 10 })
	})
}

func TestSnapshotsAndCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := config()
		settings.SnapshotInterval = time.Hour
		c := start(t, settings)
		v := c.volume(nil)
		c.server.Write(v, "data")
		n, err := c.CreateSnapshot(t.Context(), &ec2.CreateSnapshotInput{VolumeId: &v})
		if err != nil || n.State != types.SnapshotStatePending || *n.VolumeSize != 4 {
			t.Fatalf("got %+v, %v", n, err)
		}
		c.server.Write(v, "more")
		_, err = c.CreateSnapshot(t.Context(), &ec2.CreateSnapshotInput{VolumeId: &v})
		c.fails("a second one at once", "SnapshotCreationPerVolumeRateExceeded", err)
		from := func(size *int32) error {
			_, err := c.create(func(in *ec2.CreateVolumeInput) { in.SnapshotId, in.Size = n.SnapshotId, size })
			return err
		}
		c.server.Stick("pending", true)
		c.fails("a volume of one that is pending", "IncorrectState", from(nil))
		c.server.Stick("pending", false)
		<-time.After(2 * tick)
		c.fails("a volume that is too small", "InvalidParameterValue", from(aws.Int32(3)))
		restored := c.volume(func(in *ec2.CreateVolumeInput) { in.SnapshotId, in.Size = n.SnapshotId, nil })
		copied, err := c.CopyVolumes(t.Context(), &ec2.CopyVolumesInput{SourceVolumeId: &v, Encrypted: aws.Bool(true),
			VolumeType: "gp3", ClientToken: aws.String("t")})
		if err != nil || *copied.Volumes[0].SourceVolumeId != v || !*copied.Volumes[0].Encrypted {
			t.Fatalf("copying: %+v, %v", copied, err)
		}
		again, err := c.CopyVolumes(t.Context(), &ec2.CopyVolumesInput{SourceVolumeId: &v, Encrypted: aws.Bool(true),
			VolumeType: "gp3", ClientToken: aws.String("t")})
		if err != nil || *again.Volumes[0].VolumeId != *copied.Volumes[0].VolumeId {
			t.Errorf("copying with the same token: %+v, %v", again, err)
		}
		if open, err := c.CopyVolumes(t.Context(),
			&ec2.CopyVolumesInput{SourceVolumeId: &v, VolumeType: "gp3"}); err != nil || *open.Volumes[0].Encrypted {
			t.Errorf("copying without encryption: %+v, %v", open, err)
		}
		if c.server.Read(restored) != "data" || c.server.Read(*copied.Volumes[0].VolumeId) != "more" {
			t.Errorf("the restored volume has %q, the copy %q", c.server.Read(restored),
				c.server.Read(*copied.Volumes[0].VolumeId))
		}
		if _, err := c.DeleteSnapshot(t.Context(), &ec2.DeleteSnapshotInput{SnapshotId: n.SnapshotId}); err != nil {
			t.Fatal(err)
		}
		_, err = c.DeleteSnapshot(t.Context(), &ec2.DeleteSnapshotInput{SnapshotId: n.SnapshotId})
		c.fails("deleting it twice", "InvalidSnapshot.NotFound", err)
	})
}

func TestPagesAndFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, config())
		var all []string
		for i := range 12 {
			id := c.volume(nil)
			all = append(all, id)
			if _, err := c.CreateTags(t.Context(),
				&ec2.CreateTagsInput{Resources: []string{id},
					Tags: []types.Tag{{Key: aws.String("n"), Value: aws.String(fmt.Sprintf("*%d", i))}}}); err != nil {
				t.Fatal(err)
			}
		}
		list := func(limit int32, filter string, values ...string) (ids []string) {
			in := &ec2.DescribeVolumesInput{Filters: []types.Filter{{Name: &filter, Values: values}}}
			if limit > 0 {
				in.MaxResults = &limit
			}
			for pages := ec2.NewDescribeVolumesPaginator(c.Client, in); pages.HasMorePages(); {
				out, err := pages.NextPage(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if limit > 0 && len(out.Volumes) > int(limit) {
					t.Errorf("a page has %d volumes, want %d", len(out.Volumes), limit)
				}
				for _, v := range out.Volumes {
					ids = append(ids, *v.VolumeId)
				}
			}
			return ids
		}
		for _, row := range []struct {
			limit  int32
			filter string
			values []string
			want   []string
		}{
			{0, "tag-key", []string{"n"}, all}, {5, "tag-key", []string{"n"}, all}, {6, "tag-key", []string{"n"}, all},
			{0, "tag:n", []string{`\*3`, `\*4`}, all[3:5]}, {0, "tag:n", []string{"*1?"}, all[10:]},
			{0, "tag:n", []string{"?7"}, all[7:8]},
			{0, "volume-id", []string{all[2], "vol-0123456789abcdef0"}, all[2:3]}, {0, "tag:other", []string{"*"}, nil},
		} {
			if have := list(row.limit, row.filter, row.values...); !slices.Equal(have, row.want) {
				t.Errorf("%s of %q by %d: got %q, want %q", row.filter, row.values, row.limit, have, row.want)
			}
		}
		for name, in := range map[string]*ec2.DescribeVolumesInput{
			"InvalidParameterValue":       {MaxResults: aws.Int32(4)},
			"InvalidPaginationToken":      {NextToken: aws.String("nonsense")},
			"InvalidParameterCombination": {MaxResults: aws.Int32(5), VolumeIds: all[:1]},
			"InvalidVolume.NotFound":      {VolumeIds: []string{all[0], "vol-0123456789abcdef0"}},
			"FilterLimitExceeded": {Filters: []types.Filter{{Name: aws.String("volume-id"),
				Values: make([]string, 201)}}},
		} {
			_, err := c.DescribeVolumes(t.Context(), in)
			c.fails("a wrong request", name, err)
		}
		if _, err := c.DeleteTags(t.Context(),
			&ec2.DeleteTagsInput{Resources: all[:2], Tags: []types.Tag{{Key: aws.String("n")}}}); err != nil {
			t.Fatal(err)
		}
		if have := list(0, "tag-key", "n"); !slices.Equal(have, all[2:]) {
			t.Errorf("with the tags of two deleted, %d are left", len(have))
		}
	})
}

func TestQuotasThrottlingAndLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := config()
		settings.MaxVolumes = 5 // three of them root disks
		settings.Buckets = map[string]fake.Bucket{"CreateTags": {Size: 2, PerSecond: 0.001}}
		settings.Lag = 300 * time.Millisecond
		c := start(t, settings)
		out, err := c.create(nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.describe(*out.VolumeId)
		c.fails("what was made just now", "InvalidVolume.NotFound", err)
		c.fails("a second volume", "", second(c.create(nil)))
		c.fails("one over the quota", "VolumeLimitExceeded", second(c.create(nil)))
		for i, want := range []string{"", "", "RequestLimitExceeded", "RequestLimitExceeded"} {
			_, err := c.CreateTags(t.Context(), &ec2.CreateTagsInput{Resources: []string{*out.VolumeId},
				Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String(fmt.Sprint(i))}}})
			c.fails(fmt.Sprint("request ", i), want, err)
		}
		<-time.After(settings.Lag + 2*tick)
		if v, err := c.describe(*out.VolumeId); err != nil || v.State != types.VolumeStateAvailable ||
			*v.Tags[0].Value != "1" {
			t.Errorf("after a while: %+v, %v", v, err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestDoomedVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, config())
		c.server.Doom(1)
		out, err := c.create(nil)
		if err != nil {
			t.Fatal(err)
		}
		c.until("error", *out.VolumeId)
		c.volume(nil)
	})
}

func TestTypesAndZones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, config())
		kinds, err := c.DescribeInstanceTypes(t.Context(),
			&ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"small", "large"}})
		if err != nil || *kinds.InstanceTypes[0].EbsInfo.MaximumEbsAttachments != 4 ||
			kinds.InstanceTypes[0].EbsInfo.AttachmentLimitType != types.AttachmentLimitTypeShared ||
			kinds.InstanceTypes[1].EbsInfo.AttachmentLimitType != types.AttachmentLimitTypeDedicated {
			t.Errorf("the types are %+v, %v", kinds, err)
		}
		zones, err := c.DescribeAvailabilityZones(t.Context(), &ec2.DescribeAvailabilityZonesInput{})
		if err != nil || len(zones.AvailabilityZones) != 2 || *zones.AvailabilityZones[1].ZoneName != "zone-b" {
			t.Errorf("the zones are %+v, %v", zones, err)
		}
	})
}

func TestSignatureMustBeThere(t *testing.T) {
	c := start(t, config())
	recorder := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/",
		strings.NewReader("Action=DescribeVolumes&Version=2016-11-15"))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	c.server.ServeHTTP(recorder, request)
	if recorder.Code != http.StatusUnauthorized || !strings.Contains(recorder.Body.String(), "AuthFailure") {
		t.Errorf("an unsigned request got %d, %s", recorder.Code, recorder.Body)
	}
	_, err := c.DescribeAddresses(t.Context(), &ec2.DescribeAddressesInput{})
	c.fails("an action that is not here", "InvalidAction", err)
}

func TestForbiddenActions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, config())
		c.server.Forbid("DescribeInstances")
		c.fails("what no policy allows", "UnauthorizedOperation",
			second(c.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})))
		c.server.Forbid()
		c.fails("what a policy allows again", "",
			second(c.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: c.instance[:1]})))
	})
}
