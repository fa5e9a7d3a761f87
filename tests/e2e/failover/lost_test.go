package failover

import "github.com/stowage-csi/stowage/tests/cloud/region"

// nodeDeleted terminates a node's machine and deletes its Node before it can be put out of service, as the cloud's own
// controllers do. Kubernetes alone would wait for six minutes, longer than patience.
func (s *scene) nodeDeleted() {
	s.move("lives 9")
	s.cutPower()
	s.cloud.Server.SetPower(region.NodeB, "terminated")
	s.kubectl("delete", "node", lost)
	s.elsewhere(patience, s.died, "lives 10")
	s.event("VolumesFreed")
}
