package ebs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/imds"
)

// TestLimitWithoutPermission covers nodes that may not ask EC2 for everything. EC2's number for the type is 12, besides
// the primary interface. EC2 shows a second interface, and the metadata service a third.
func TestLimitWithoutPermission(t *testing.T) {
	none := func(m *machine) {
		m.ec2.Forbid("DescribeInstances", "DescribeInstanceTypes")
	}
	noCredentials := func(*machine) {
		t.Setenv("AWS_ACCESS_KEY_ID", "")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	}
	for _, row := range []struct {
		name string
		edit func(m *machine)
		want int64
		told bool
	}{
		{"it may ask", func(*machine) {}, 12 - 1 - 1, false},
		{"not of instances", func(m *machine) { m.ec2.Forbid("DescribeInstances") }, 12 - 1 - 2, true},
		{"not of types", func(m *machine) { m.ec2.Forbid("DescribeInstanceTypes") }, 25 - 1 - 1, true},
		{"not at all", none, 25 - 1 - 2, true},
		{"not at all, not even the metadata service", func(m *machine) { none(m); m.imds.Be(imds.Disabled) }, 25 - 1 - 7,
			true},
		{"not at all, and some are reserved",
			func(m *machine) { none(m); m.edit = func(c *ebs.Config) { c.ReservedAttachments = 5 } }, 25 - 1 - 2 - 5, true},
		{"not at all, and the limit is configured",
			func(m *machine) { none(m); m.edit = func(c *ebs.Config) { c.VolumeAttachLimit = 11 } }, 11 - 1, true},
		{"not at all, and two disks are the instance's own", func(m *machine) {
			none(m)
			m.edit = func(c *ebs.Config) { ownDisks(t, c) }
		}, 25 - 1 - 2 - 2, true},
		{"not of instances, and two disks are the instance's own, which EC2's number leaves out", func(m *machine) {
			m.ec2.Forbid("DescribeInstances")
			m.edit = func(c *ebs.Config) { ownDisks(t, c) }
		}, 12 - 1 - 2, true},
		{"it has no credentials", noCredentials, 25 - 1 - 2, true},
		{"it has no credentials and no metadata service", func(m *machine) { noCredentials(m); m.imds.Be(imds.Strange) },
			25 - 1 - 7, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newMachine(t)
			m.imds.SetInterfaces(3)
			row.edit(m)
			instance, err := m.open(t)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			for range 2 {
				have, err := instance.Node.(backends.Limiter).Limit(t.Context())
				if have != row.want || err != nil {
					t.Errorf("the limit is %d, %v; want %d", have, err, row.want)
				}
			}
			if took := time.Since(began); took > 2*time.Minute {
				t.Errorf("it took %v for two answers", took)
			}
			told := strings.Count(m.log.String(), "this node may not ask EC2")
			if told != map[bool]int{true: 1}[row.told] || row.told && !strings.Contains(m.log.String(), "volumeAttachLimit") {
				t.Errorf("it was told %d times:\n%s", told, m.log.String())
			}
		})
	}
}

// TestLimitIsNotGuessed makes EC2 unreachable, as it may be for a while.
func TestLimitIsNotGuessed(t *testing.T) {
	m := newMachine(t)
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
	instance, err := m.open(t)
	if err != nil {
		t.Fatal(err)
	}
	if have, err := instance.Node.(backends.Limiter).Limit(t.Context()); !backends.Is(err, backends.Unavailable) {
		t.Errorf("the limit is %d, %v; want Unavailable", have, err)
	}
}

// ownDisks makes the kernel show the root disk and two disks that belong to the instance's type.
func ownDisks(t *testing.T, c *ebs.Config) {
	t.Helper()
	for name, serial := range map[string]string{"nvme0n1": "vol0123456789abcdef0", "nvme1n1": "AWS1", "nvme2n1": "AWS2"} {
		disk(t, c.SysBlock, name, serial)
	}
}

// disk makes the kernel show an NVMe disk.
func disk(t *testing.T, sys, name, serial string) {
	t.Helper()
	dir := filepath.Join(sys, name, "device")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "serial"), []byte(serial+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}
