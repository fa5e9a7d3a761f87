package controllers

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/tests/inprocess"
)

const zone = "memory.csi.stowage.dev/zone"

// start starts a driver that logs each message, and a client for it.
func start(t *testing.T) (*inprocess.Driver, *csiclient.Client, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	driver := inprocess.Start(t, inprocess.Options{
		Backend: "memory", Config: "{zone: here, capacityBytes: 1073741824}", Log: log, Level: -5,
	})
	client, err := csiclient.Connect(t.Context(), driver.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return driver, client, log
}

func request(name string, change ...func(*csiclient.Request)) csiclient.Request {
	r := csiclient.Request{
		Name: name, SizeBytes: 1 << 20, VolumeMode: corev1.PersistentVolumeFilesystem,
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

// TestSameRequestSameVolume creates a volume twice, deletes it twice, and creates it again.
func TestSameRequestSameVolume(t *testing.T) {
	_, client, _ := start(t)
	if client.Driver() != "memory.csi.stowage.dev" || !client.HasTopology() {
		t.Errorf("the driver is %q, with topology: %t", client.Driver(), client.HasTopology())
	}
	first, err := client.Create(t.Context(), request("a"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := client.Create(t.Context(), request("a"))
	if err != nil || again.Handle != first.Handle || first.Handle == "" || first.SizeBytes < 1<<20 {
		t.Errorf("the same request gives %+v, then %+v (%v)", first, again, err)
	}
	other, err := client.Create(t.Context(), request("b"))
	if err != nil || other.Handle == first.Handle {
		t.Errorf("another name gives %+v (%v), the volume of the first", other, err)
	}
	for range 2 {
		if err := client.Delete(t.Context(), first.Handle); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
}

// TestAnswersThatEndARequest checks which failures imply that there is no volume.
func TestAnswersThatEndARequest(t *testing.T) {
	driver, client, _ := start(t)
	if _, err := client.Create(t.Context(),
		request("large", func(r *csiclient.Request) { r.SizeBytes = 700 << 20 })); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		request csiclient.Request
		final   bool
		says    string
	}{
		"a parameter that does not exist": {request("a",
			func(r *csiclient.Request) { r.Parameters = map[string]string{"colour": "red"} }), true, "colour"},
		"no access mode": {request("a", func(r *csiclient.Request) { r.AccessModes = nil }), true,
			"access modes"},
		"more than there ever is": {request("a", func(r *csiclient.Request) { r.SizeBytes = 1 << 40 }), true,
			"bytes"},
		"more than there is now": {request("a", func(r *csiclient.Request) { r.SizeBytes = 700 << 20 }), true,
			"bytes"},
	} {
		_, err := client.Create(t.Context(), c.request)
		if err == nil || csiclient.IsFinal(err) != c.final || !strings.Contains(csiclient.Message(err), c.says) {
			t.Errorf("%s: %v, final: %t; want final: %t, and %q in it", name, err, csiclient.IsFinal(err), c.final, c.says)
		}
		if strings.Contains(csiclient.Message(err), "rpc error") {
			t.Errorf("%s: gRPC's words are in %q", name, csiclient.Message(err))
		}
	}
	// Stimulus: no driver answers within a nanosecond.
	late, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if _, err := client.Create(late, request("late")); err == nil || csiclient.IsFinal(err) {
		t.Errorf("a request that ran out of time is taken for refused: %v", err)
	}
	driver.Stop(t)
	if _, err := client.Create(t.Context(), request("gone")); err == nil || csiclient.IsFinal(err) {
		t.Errorf("a driver that is away is taken for a refusal: %v", err)
	}
}

// TestAbsence checks which refusals prove that no volume has the name: only those where no volume exists in any allowed
// place.
func TestAbsence(t *testing.T) {
	_, client, _ := start(t)
	here := func(r *csiclient.Request) { r.Segments = map[string]string{zone: "here"} }
	large := func(r *csiclient.Request) { r.SizeBytes = 700 << 20 }
	raw := func(r *csiclient.Request) { r.VolumeMode = corev1.PersistentVolumeBlock }
	there := func(r *csiclient.Request) { r.Segments = map[string]string{zone: "there"} }
	strange := func(r *csiclient.Request) { r.Parameters = map[string]string{"colour": "red"} }
	endless := func(r *csiclient.Request) { r.SizeBytes = 1 << 40 }
	if _, err := client.Create(t.Context(), request("there", here, large)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		request csiclient.Request
		absent  bool
	}{
		"there is no room":                 {request("a", here, large), true},
		"nor will there ever be":           {request("a", here, endless), true},
		"the volume is another":            {request("there", here, raw), false},
		"the place is not the driver's":    {request("a", large, there), false},
		"it may be anywhere":               {request("a", large), false},
		"the request cannot be understood": {request("a", here, strange), false},
	} {
		_, err := client.Create(t.Context(), c.request)
		if err == nil || csiclient.IsAbsent(err) != c.absent {
			t.Errorf("%s: %v; it is proven that there is none: %t, want %t", name, err, csiclient.IsAbsent(err), c.absent)
		}
	}
}

// TestAbsenceAtLocal requests more than the pool of a driver of local disks has: the refusal proves that there is no
// volume, on the driver's own node only.
func TestAbsenceAtLocal(t *testing.T) {
	driver := inprocess.Start(t, inprocess.Options{
		Backend: "local", Config: "pools: [{name: p, type: directory, sharesDisk: true, capacity: 100Mi}]",
	})
	client, err := csiclient.Connect(t.Context(), driver.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // No more calls follow.
	for node, want := range map[string]bool{"node-1": true, "node-2": false} {
		_, err := client.Create(t.Context(), request("a", func(r *csiclient.Request) {
			r.SizeBytes, r.Parameters = 1<<30, map[string]string{"pool": "p"}
			r.Segments = map[string]string{client.Driver() + "/node": node}
		}))
		if err == nil || !csiclient.IsFinal(err) || csiclient.IsAbsent(err) != want {
			t.Errorf("on %s: %v; it is proven that there is none: %t, want %t", node, err, csiclient.IsAbsent(err), want)
		}
	}
}

// TestPlaces requests a volume in the driver's zone, and in another one.
func TestPlaces(t *testing.T) {
	_, client, _ := start(t)
	here, there := map[string]string{zone: "here"}, map[string]string{zone: "there"}
	volume, err := client.Create(t.Context(), request("a", func(r *csiclient.Request) { r.Segments = here }))
	if err != nil || len(volume.Places) != 1 || !maps.Equal(volume.Places[0], here) {
		t.Errorf("a volume asked for in %v is in %v (%v)", here, volume.Places, err)
	}
	if volume, err := client.Create(t.Context(),
		request("b", func(r *csiclient.Request) { r.Segments = there })); err == nil {
		t.Errorf("a volume asked for in %v is in %v", there, volume.Places)
	}
}

// TestWhatArrives checks the access modes, volume mode, filesystem and mount options in the driver's requests.
func TestWhatArrives(t *testing.T) {
	driver, client, log := start(t)
	for name, change := range map[string]func(*csiclient.Request){
		"MULTI_NODE_MULTI_WRITER": func(r *csiclient.Request) {
			r.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteMany}
			r.VolumeMode = corev1.PersistentVolumeBlock
		},
		"MULTI_NODE_READER_ONLY": func(r *csiclient.Request) {
			r.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
		},
		"SINGLE_NODE_SINGLE_WRITER": func(r *csiclient.Request) {
			r.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
		},
		"mount_flags": func(r *csiclient.Request) { r.MountOptions = []string{"noatime"} },
	} {
		if _, err := client.Create(t.Context(), request(strings.ToLower(name), change)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := client.Create(t.Context(), request("fs_type", func(r *csiclient.Request) { r.FSType = "ext4" }))
	if err == nil || !strings.Contains(csiclient.Message(err), `filesystem "ext4"`) { // A directory has no such type.
		t.Errorf("a filesystem on a directory: %v", err)
	}
	driver.Stop(t) // Its log is then complete.
	for _, want := range []string{"MULTI_NODE_MULTI_WRITER", "MULTI_NODE_READER_ONLY", "SINGLE_NODE_SINGLE_WRITER", "ext4",
		"noatime", "block"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the driver was told nothing of %s:\n%s", want, log)
		}
	}
}

// TestList lists more volumes than a page has, one of which is attached.
func TestList(t *testing.T) {
	driver, client, _ := start(t)
	if !client.CanList() || !client.ListsNodes() {
		t.Fatal("the driver lists no volumes, or not where they are attached")
	}
	const volumes = 501 // A page has at most 500.
	var last csiclient.Volume
	for i := range volumes {
		volume, err := client.Create(t.Context(), request(strconv.Itoa(i), func(r *csiclient.Request) { r.SizeBytes = 4096 }))
		if err != nil {
			t.Fatal(err)
		}
		last = volume
	}
	_, err := csi.NewControllerClient(driver.Conn).ControllerPublishVolume(t.Context(),
		&csi.ControllerPublishVolumeRequest{
			VolumeId: last.Handle, NodeId: "node-1", VolumeContext: last.Context, VolumeCapability: &csi.VolumeCapability{
				AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
				AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
			},
		})
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.List(t.Context())
	if err != nil || len(list) != volumes {
		t.Fatalf("the list has %d volumes (%v), want %d", len(list), err, volumes)
	}
	for _, v := range list {
		if attached := slices.Equal(v.Nodes, []string{"node-1"}); attached != (v.Handle == last.Handle) {
			t.Errorf("volume %s is attached to %q", v.Handle, v.Nodes)
		}
	}
	driver.Stop(t)
	if list, err := client.List(t.Context()); err == nil {
		t.Errorf("a driver that is away lists %d volumes", len(list))
	}
}
