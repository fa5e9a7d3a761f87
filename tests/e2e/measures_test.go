package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// summary is the part of a kubelet's summary that reports the volumes of its pods.
type summary struct {
	Pods []struct {
		PodRef struct{ Namespace string }
		Volume []struct {
			PVCRef        *struct{ Name string }
			CapacityBytes int64
		}
	}
}

// TestKubeletMeasures expects the sizes of a mounted and of a raw volume in the kubelet's metrics, on which
// administrators set alarms. The kubelet measures a raw volume at its own bind mount of the device.
func TestKubeletMeasures(t *testing.T) {
	t.Parallel()
	s := cluster(t).NewSpace(t)
	s.MakeClaim(workload.Claim("disk", ext4, "64Mi", workload.Block))
	s.MakeClaim(workload.Claim("data", ext4, "64Mi"))
	pod := s.Start(workload.Pod("user", "sleep 1000", []workload.Mount{
		{Claim: "disk", Path: "/dev/disk", Device: true}, {Claim: "data", Path: "/data"},
	}))
	s.Must(workload.Eventually(s.Context(), "the sizes of both volumes", func() error {
		sizes, err := measured(s, pod.Spec.NodeName, pod.Namespace)
		if err == nil && (sizes["disk"] != 64<<20 || sizes["data"] < 48<<20 || sizes["data"] > 64<<20) {
			err = fmt.Errorf("the kubelet has the sizes %v", sizes)
		}
		return err
	}))
}

// measured returns the sizes of a namespace's claims on a node, in bytes.
func measured(s *workload.Space, node, namespace string) (map[string]int64, error) {
	out, err := cluster(s.T).Kubectl(s.Context(), "get", "--raw", "/api/v1/nodes/"+node+"/proxy/stats/summary")
	if err != nil {
		return nil, err
	}
	var said summary
	if err := json.Unmarshal([]byte(out), &said); err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	for _, pod := range said.Pods {
		for _, volume := range pod.Volume {
			if pod.PodRef.Namespace == namespace && volume.PVCRef != nil {
				sizes[volume.PVCRef.Name] = volume.CapacityBytes
			}
		}
	}
	return sizes, nil
}
