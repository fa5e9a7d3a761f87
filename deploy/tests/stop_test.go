package tests

import "testing"

// TestPodsOutlastTheStop checks that the kubelet does not kill a driver that is shutting down. Without
// --shutdown-grace, cmd/driver ends within 29 s, which its own tests check.
func TestPodsOutlastTheStop(t *testing.T) {
	each(t, func(t *testing.T, objects []object) {
		for id, pod := range pods(t, objects) {
			driver, has := driverOf(t, id, pod)
			if !has {
				continue
			}
			if given := pod.Spec.TerminationGracePeriodSeconds; given == nil || *given < 30 {
				t.Errorf("%s is killed after %v seconds, want 30 at least", id, given)
			}
			if grace := flagOf(driver.Args, "shutdown-grace"); grace != "" {
				t.Errorf("%s has --shutdown-grace=%s: its end has another length", id, grace)
			}
		}
	})
}
