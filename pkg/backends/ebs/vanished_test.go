package ebs_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// badKey is a KMS key that EC2 cannot use.
const badKey = "arn:aws:kms:region-1:111122223333:key/bad"

// namesKey reports whether an error names a key and says what to check.
func namesKey(err error, key string) bool {
	return err != nil && strings.Contains(err.Error(), key) && strings.Contains(err.Error(), "is enabled")
}

// TestVolumeVanishes: EC2 checks a volume's KMS key only after its answer, and a volume without a usable key is gone
// then. A caller is told so. It succeeds once the key can be used.
func TestVolumeVanishes(t *testing.T) {
	const soon = 4 * time.Second // less than EC2 takes to be certain
	for name, row := range map[string]struct {
		patience time.Duration // of a call
		restart  bool          // whether the process ends after the first call
		dead     bool          // see Config.DeadTokens
		key      string        // in the class
		want     string        // the key in the error
		most     int           // how many volumes EC2 has accepted when a call says why
	}{
		"one patient call":           {patience: time.Hour, key: badKey, want: badKey, most: 1},
		"short calls":                {patience: soon, key: badKey, want: badKey, most: 1},
		"short calls, a dead token":  {patience: soon, dead: true, key: badKey, want: badKey, most: 1},
		"after a restart":            {patience: soon, restart: true, key: badKey, want: badKey, most: 2},
		"a restart and a dead token": {patience: soon, restart: true, dead: true, key: badKey, want: badKey, most: 2},
		"a key that the class omits": {patience: soon, want: "the account's default KMS key", most: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := region.Quick()
				config.DeadTokens = row.dead
				w := region.New(t, config, 0)
				w.Server.BreakKey(row.key, true)
				spec := region.Spec("v")
				spec.Parameters = &ebs.Parameters{Type: "gp3", KMSKeyID: row.key}
				d := open(t, w, nil)
				<-time.After(2 * time.Second) // A volume that is born with the process may be an earlier one's.
				if row.restart {
					if _, err := d.Create(within(t, row.patience), spec); !undecided(err) {
						t.Fatalf("the former process ends with %v, want Busy or Unavailable", err)
					}
					d = open(t, w, nil)
				}
				d.vanishes(spec, row.patience, row.want)
				if n := accepted(w); n > row.most {
					t.Errorf("EC2 has accepted %d volumes, want at most %d", n, row.most)
				}
				w.Server.BreakKey(row.key, false)
				if v, err := d.Create(t.Context(), spec); err != nil || len(w.Server.Volumes()) != 1 {
					t.Errorf("with a key that can be used: %+v, %v; there are %+v", v, err, w.Server.Volumes())
				}
			})
		})
	}
}

// accepted counts the volumes that EC2 has accepted, and those that were gone later.
func accepted(w *region.Region) int {
	ids := map[string]bool{}
	for _, state := range w.Server.Past() {
		ids[state.Volume] = true
	}
	return len(ids)
}

// vanishes creates a volume that vanishes, in calls that take no longer than patience, until a call says why.
func (d driver) vanishes(spec backends.Spec, patience time.Duration, want string) {
	d.Helper()
	var v *backends.Volume
	err := backends.Errorf(backends.Busy, "not asked")
	for end := time.Now().Add(10 * time.Minute); undecided(err) && !namesKey(err, want) && time.Now().Before(end); {
		v, err = d.Create(within(d.T, patience), spec)
		<-time.After(time.Second)
	}
	if !backends.Is(err, backends.Unavailable) || !namesKey(err, want) {
		d.Errorf("got %+v with %v, want Unavailable that names %s", v, err, want)
	}
}

// TestLateReadsAreNoVanishing hides a volume with a usable key for longer than EC2 should, or shows it now and then
// only. EC2 has the volume, so nothing may take its place.
func TestLateReadsAreNoVanishing(t *testing.T) {
	for name, row := range map[string]struct {
		lag      time.Duration
		unsteady bool
	}{
		"no read shows it":           {lag: time.Hour},
		"reads that go back in time": {lag: 40 * time.Second, unsteady: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := region.New(t, region.Quick(), 0)
				w.Server.SetLag(row.lag)
				w.Server.SetUnsteady(row.unsteady)
				d, spec := open(t, w, nil), region.Spec("v")
				spec.Parameters = &ebs.Parameters{Type: "gp3", KMSKeyID: "alias/good"}
				err := backends.Errorf(backends.Busy, "not asked")
				for end := time.Now().Add(time.Minute); undecided(err) && time.Now().Before(end); {
					_, err = d.Create(t.Context(), spec)
					if namesKey(err, "alias/good") {
						t.Fatalf("got %v, want no word of the key", err)
					}
					<-time.After(time.Second)
				}
				w.Server.SetLag(0)
				if _, err := d.Create(t.Context(), spec); !backends.Is(err, backends.Exists) {
					t.Errorf("when reads show it: got %v, want Exists", err)
				}
				if n := len(w.Server.Volumes()); n != 1 {
					t.Errorf("there are %d volumes, want 1", n)
				}
			})
		})
	}
}
