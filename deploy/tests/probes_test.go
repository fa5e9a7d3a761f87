package tests

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestPeersEndNoDriver checks that a peer on the network cannot cause a driver's restart, together with a filesystem
// check that it may be running. A peer could keep a port from answering, and that of the livenessprobe sidecar by idle
// connections alone, whose number is not limited. The kubelet therefore runs a command in the driver's container, which
// calls the driver's socket. The sidecar is for checks from the pod or the node.
func TestPeersEndNoDriver(t *testing.T) {
	each(t, func(t *testing.T, objects []object) {
		for id, pod := range pods(t, objects) {
			driver, has := driverOf(t, id, pod)
			if !has {
				continue
			}
			checkAsked(t, id+" starts", driver, driver.StartupProbe)
			checkAsked(t, id+" lives", driver, driver.LivenessProbe)
			sidecar := container(t, pod, "liveness-probe")
			if listens := flagOf(sidecar.Args, "http-endpoint"); !strings.HasPrefix(listens, "127.0.0.1:") {
				t.Errorf("%s: %s listens at %q, want an address that no peer reaches", id, sidecar.Name, listens)
			}
			if flagOf(sidecar.Args, "csi-address") != strings.TrimPrefix(flagOf(driver.Args, "endpoint"), "unix://") {
				t.Errorf("%s: %s asks another socket than the driver's: %q", id, sidecar.Name, sidecar.Args)
			}
		}
	})
}

// checkAsked checks that a probe is the driver's own command, which calls the driver's socket, and that the command
// reports its reason before the kubelet ends it.
func checkAsked(t *testing.T, what string, driver corev1.Container, probe *corev1.Probe) {
	t.Helper()
	if probe == nil || probe.Exec == nil {
		t.Errorf("whether %s is asked of %v, want a command in its container", what, probe)
		return
	}
	want := []string{"/stowage", "probe", "--endpoint=" + flagOf(driver.Args, "endpoint")}
	if !slices.Equal(probe.Exec.Command, want) {
		t.Errorf("whether %s is asked by %q, want %q", what, probe.Exec.Command, want)
	}
	checkFlags(t, what, source(t, "driver/probe.go"), probe.Exec.Command[2:])
	if !strings.Contains(readText(t, "../../Dockerfile"), "\nENTRYPOINT [\""+probe.Exec.Command[0]+"\"]\n") {
		t.Errorf("%s: the image has the driver elsewhere than %s", what, probe.Exec.Command[0])
	}
	if limit := "5*time.Second"; !strings.Contains(source(t, "driver/probe.go"), limit) || probe.TimeoutSeconds <= 5 {
		t.Errorf("%s: the kubelet waits %d s for a command that asks for %s", what, probe.TimeoutSeconds, limit)
	}
}

// flagOf returns the value of a flag among arguments, or "".
func flagOf(args []string, name string) (value string) {
	for _, arg := range args {
		if rest, is := strings.CutPrefix(arg, "--"+name+"="); is {
			value = rest
		}
	}
	return value
}
