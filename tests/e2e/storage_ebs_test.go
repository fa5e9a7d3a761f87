package e2e

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	fake "github.com/stowage-csi/stowage/tests/cloud/ec2"
	"github.com/stowage-csi/stowage/tests/cloud/region"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// apiPort is in deployed/ebs/kustomization.yaml.
const apiPort = 8111

// startEBS gives the cluster an EC2 API, and runs the driver's own controller with all its sidecars in the cluster.
func startEBS(t *testing.T) *storage {
	c := cluster(t)
	cloud := &busyCloud{Region: region.New(t, region.Quick(), 1)}
	listener, err := c.Listen(t.Context(), apiPort)
	if err != nil {
		t.Fatal(err)
	}
	api := &http.Server{Handler: cloud, ReadHeaderTimeout: time.Minute}
	go func() { _ = api.Serve(listener) }() // It ends when it is closed.
	t.Cleanup(func() { _ = api.Close() })
	deploy(t, c, "ebs")
	zone := corev1.TopologySelectorLabelRequirement{Key: corev1.LabelTopologyZone, Values: []string{"region-1a"}}
	return &storage{
		parameters: func(*workload.Space) map[string]string { return map[string]string{"type": "gp3"} },
		topology:   []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{zone}}},
		grain:      1 << 30, refused: ebsRefuses(), slow: func(*workload.Space) func() { return cloud.hold() },
		there: func(_ *workload.Space, volume *corev1.PersistentVolume) (bool, error) {
			is := func(v fake.Volume) bool { return v.ID == volume.Spec.CSI.VolumeHandle }
			return slices.ContainsFunc(cloud.Server.Volumes(), is), nil
		},
		keep: cloud.keep, dangling: cloud.dangling,
	}
}

func ebsRefuses() map[string]refusal {
	return map[string]refusal{
		"unknown parameter": {
			parameters: map[string]string{"tipe": "gp3"}, says: []string{`parameter "tipe" is not known: did you mean "type"?`},
		},
		"wrong case": {
			parameters: map[string]string{"IOPS": "3000"}, says: []string{`parameter "IOPS" is not known: did you mean "iops"`},
		},
		"unknown value": {
			parameters: map[string]string{"type": "gp9"}, says: []string{"type", "gp9", "gp2", "gp3", "io2"},
		},
		"impossible filesystem": {
			parameters: map[string]string{"type": "gp3", fsType: "ntfs"}, says: []string{"ntfs", "ext4", "xfs"},
		},
		"impossible combination": {
			parameters: map[string]string{"type": "st1", "throughput": "200"}, says: []string{"throughput", "gp3"},
		},
	}
}

// busyCloud is a region whose API can be slow to answer.
type busyCloud struct {
	*region.Region
	free     sync.RWMutex
	attached atomic.Int32 // by hand
}

// ServeHTTP answers when the cloud is free.
func (c *busyCloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.free.RLock()
	defer c.free.RUnlock()
	c.Proxy.ServeHTTP(w, r)
}

// hold keeps the cloud busy until it is released.
func (c *busyCloud) hold() (release func()) {
	c.free.Lock()
	return sync.OnceFunc(c.free.Unlock)
}

// keep attaches the volume to an instance outside the cluster.
func (c *busyCloud) keep(s *workload.Space, volume *corev1.PersistentVolume) (says []string, letGo func()) {
	s.T.Helper()
	letGo = c.attach(s, volume, region.NodeB)
	return []string{volume.Spec.CSI.VolumeHandle, "currently attached to " + region.NodeB,
		"detach it from that instance first"}, letGo
}
