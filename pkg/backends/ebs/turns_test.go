package ebs_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	fake "github.com/stowage-csi/stowage/tests/cloud/ec2"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestControllersInTurn makes one controller create and delete a volume, and another one create a volume of that name
// right after. EC2 answers the token with the deleted volume, and reads show that volume only when the second call has
// lasted for longer than the volume existed.
func TestControllersInTurn(t *testing.T) { synctest.Test(t, controllersInTurn) }

func controllersInTurn(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	first, second := open(t, w, nil), open(t, w, nil)
	gone := first.make("v").Handle
	<-time.After(2 * time.Second)
	if err := first.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	w.Server.SetLag(5 * time.Second)
	made, err := second.Create(t.Context(), region.Spec("v"))
	for range 60 {
		if !undecided(err) {
			break
		}
		<-time.After(time.Second)
		if made, err = second.Create(t.Context(), region.Spec("v")); backends.Is(err, backends.Exists) {
			made, err = second.Find(t.Context(), region.Spec("v"))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	is := func(v fake.Volume) bool { return v.ID == made.Handle && v.State == "available" }
	if there := w.Server.Volumes(); !slices.ContainsFunc(there, is) {
		t.Errorf("%s was made, after %s was deleted, and there are %+v", made.Handle, gone, there)
	}
}
