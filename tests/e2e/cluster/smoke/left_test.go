package smoke

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/leftovers"
)

// host is the state of the host that a cluster must not change.
type host struct {
	interfaces []string
	settings   map[string]string
	folders    []string // the existing ones of those that components of Kubernetes create by default
}

func lookAtHost(t *testing.T) host {
	t.Helper()
	h := host{settings: map[string]string{}}
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		h.interfaces = append(h.interfaces, i.Name)
	}
	for _, setting := range []string{
		"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys",
		"net/ipv4/ip_forward", "kernel/hostname",
	} {
		text, err := os.ReadFile("/proc/sys/" + setting)
		if err != nil {
			t.Fatal(err)
		}
		h.settings[setting] = string(text)
	}
	for _, path := range []string{"/var/lib/kubelet", "/var/lib/containerd", "/var/log/pods", "/run/containerd",
		"/run/netns", "/usr/libexec/kubernetes", "/etc/cni/net.d"} {
		if _, err := os.Lstat(path); err == nil {
			h.folders = append(h.folders, path)
		}
	}
	return h
}

// nothingLeft fails the test if anything is left of the cluster. Namespaces may take a moment to end.
func nothingLeft(t *testing.T, data string, before host) {
	t.Helper()
	for until := time.Now().Add(2 * time.Minute); ; {
		left := leftOf(t, data)
		if len(left) == 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("left of the cluster in %s:\n%s", data, strings.Join(left, "\n"))
		}
		<-time.After(50 * time.Millisecond)
	}
	after := lookAtHost(t)
	if !slices.Equal(before.interfaces, after.interfaces) {
		t.Errorf("interfaces were %v, are %v", before.interfaces, after.interfaces)
	}
	for setting, was := range before.settings {
		if is := after.settings[setting]; is != was {
			t.Errorf("%s was %q, is %q", setting, was, is)
		}
	}
	if !slices.Equal(before.folders, after.folders) {
		t.Errorf("of the folders of Kubernetes, the host had %v, has %v", before.folders, after.folders)
	}
}

// leftOf lists processes, mounts in any namespace, control groups, loop devices and files of the cluster.
func leftOf(t *testing.T, data string) []string {
	t.Helper()
	l, err := layout.New(data)
	if err != nil {
		t.Fatal(err)
	}
	left := inProc(t, data, l.Cgroup())
	groups, err := leftovers.Cgroups(l.Cgroup())
	if err != nil {
		t.Fatal(err)
	}
	loops, err := leftovers.Loops(data)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(data + "*")
	if err != nil {
		t.Fatal(err)
	}
	return append(left, slices.Concat(groups, loops, files)...)
}

// inProc lists the processes that contain the folder in their arguments or mounts, or that are in the control group.
func inProc(t *testing.T, data, cgroup string) []string {
	t.Helper()
	var left []string
	for file, wanted := range map[string]string{"cmdline": data, "mountinfo": data, "cgroup": cgroup} {
		paths, err := filepath.Glob("/proc/[0-9]*/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			// It may have ended in the meantime.
			if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(wanted)) {
				left = append(left, path+" names "+wanted)
			}
		}
	}
	return left
}
