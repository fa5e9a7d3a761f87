package controllers

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/tests/inprocess"
)

// TestUseThroughTheSocket asks the real driver over a real socket whether its node uses a volume.
func TestUseThroughTheSocket(t *testing.T) {
	driver := inprocess.Start(t, inprocess.Options{Backend: "local", Config: "pools: [{name: image, type: directory}]"})
	client, err := csiclient.Connect(t.Context(), driver.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	made, err := client.Create(t.Context(), csiclient.Request{Name: "a", SizeBytes: 1 << 20,
		VolumeMode:  corev1.PersistentVolumeFilesystem,
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}})
	if err != nil {
		t.Fatal(err)
	}
	check := func(after string, want bool) {
		t.Helper()
		if use, err := client.Use(t.Context(), made.Handle); err != nil || use.InUse != want || (use.Says != "") != want {
			t.Errorf("%s the use is %+v, %v", after, use, err)
		}
	}
	check("at first", false)
	node := driver.Instance.Node
	attachment := backends.Attachment{Handle: made.Handle, Type: backends.Mount}
	if _, err := node.Source(t.Context(), attachment); err != nil {
		t.Fatal(err)
	}
	check("after Source", true)
	if err := node.(backends.Releaser).Release(t.Context(), made.Handle); err != nil {
		t.Fatal(err)
	}
	check("after Release", false)
	if err := client.Delete(t.Context(), made.Handle); err != nil {
		t.Fatal(err)
	}
	check("after its deletion", false)
	driver.Stop(t)
	if use, err := client.Use(t.Context(), made.Handle); err == nil {
		t.Errorf("a driver that is stopped says %+v", use)
	}
}
