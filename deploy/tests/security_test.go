package tests

import (
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestContainers checks that only the container that mounts or opens disks is privileged, and that all others have
// minimal privileges.
func TestContainers(t *testing.T) {
	for _, in := range installs() {
		t.Run(in.name, func(t *testing.T) {
			for id, pod := range pods(t, kustomized(t, in.folder)) {
				for _, c := range containers(pod) {
					controller := strings.HasPrefix(id, "Deployment/")
					switch {
					case c.Name == "stowage" && !controller:
						checkPrivileged(t, id, c)
					case c.Name == "stowage" && in.backend == "nfs":
						checkPrivateMounts(t, id, pod.Spec.SecurityContext, c)
					case c.Name == "disks" && id == disksOpener:
						checkDisksOpener(t, id, pod, c)
					default:
						checkTight(t, id, pod.Spec.SecurityContext, c)
					}
					checkEveryone(t, id, c)
				}
			}
		})
	}
}

func checkPrivileged(t *testing.T, id string, c corev1.Container) {
	t.Helper()
	if s := c.SecurityContext; s.Privileged == nil || !*s.Privileged {
		t.Errorf("%s: %s mounts and is not privileged, which mount propagation needs", id, c.Name)
	}
	both := corev1.MountPropagationBidirectional
	if i := slices.IndexFunc(c.VolumeMounts,
		func(m corev1.VolumeMount) bool { return m.MountPath == "/var/lib/kubelet" }); i < 0 ||
		c.VolumeMounts[i].MountPropagation == nil || *c.VolumeMounts[i].MountPropagation != both {
		t.Errorf("%s: what %s mounts is not seen by the kubelet", id, c.Name)
	}
}

// checkPrivateMounts checks a controller that mounts for itself: it is root with exactly the necessary capabilities,
// and otherwise restricted.
func checkPrivateMounts(t *testing.T, id string, pod *corev1.PodSecurityContext, c corev1.Container) {
	t.Helper()
	if have, want := c.SecurityContext.Capabilities.Add, neededCapabilities(t); !slices.Equal(have, want) {
		t.Errorf("%s: %s has the capabilities %v, want %v", id, c.Name, have, want)
	}
	if user := c.SecurityContext.RunAsUser; user == nil || *user != 0 {
		t.Errorf("%s: %s is not root, which the server's files belong to", id, c.Name)
	}
	rest := *c.DeepCopy()
	rest.SecurityContext.Capabilities.Add, rest.SecurityContext.RunAsUser, rest.SecurityContext.RunAsNonRoot = nil, nil,
		nil
	checkTight(t, id, pod, rest)
}

// neededCapabilities returns the capabilities that the test in the virtual machine proves to be necessary and
// sufficient.
func neededCapabilities(t *testing.T) (needed []corev1.Capability) {
	t.Helper()
	text, err := os.ReadFile("../../tests/vm/suites/nfsdriver/capabilities_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "func controllerCapabilities() []string {\n\treturn []string{")
	list, _, _ = strings.Cut(list, "}")
	for name := range strings.SplitSeq(list, ", ") {
		needed = append(needed, corev1.Capability(strings.Trim(name, `"`)))
	}
	return needed
}

// checkTight checks the Pod Security level "restricted", and additionally a read-only root filesystem. Only the
// registrar is root.
func checkTight(t *testing.T, id string, pod *corev1.PodSecurityContext, c corev1.Container) {
	t.Helper()
	s := c.SecurityContext
	if pod == nil {
		pod = &corev1.PodSecurityContext{}
	}
	if s.Privileged != nil && *s.Privileged || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
		t.Errorf("%s: %s can get more privileges", id, c.Name)
	}
	if s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) ||
		len(s.Capabilities.Add) > 0 {
		t.Errorf("%s: %s has capabilities: %v", id, c.Name, s.Capabilities)
	}
	profile := s.SeccompProfile
	if profile == nil {
		profile = pod.SeccompProfile
	}
	if profile == nil || profile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("%s: %s has no seccomp profile", id, c.Name)
	}
	user, never := s.RunAsUser, s.RunAsNonRoot
	if user == nil {
		user = pod.RunAsUser
	}
	if never == nil {
		never = pod.RunAsNonRoot
	}
	root := c.Name == "node-driver-registrar" // It owns only its socket in the kubelet's folder, which is root's.
	if !root && (user == nil || *user == 0 || never == nil || !*never) {
		t.Errorf("%s: %s is root", id, c.Name)
	}
}

// checkEveryone checks the conditions for every container.
func checkEveryone(t *testing.T, id string, c corev1.Container) {
	t.Helper()
	if s := c.SecurityContext; s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
		t.Errorf("%s: %s can write to its image's files", id, c.Name)
	}
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
		t.Errorf("%s: %s asks for no resources", id, c.Name)
	}
	if _, tag, found := strings.Cut(c.Image, ":"); !found || tag == "latest" {
		t.Errorf("%s: %s runs %s, which can change", id, c.Name, c.Image)
	}
}

// asksForItself reports whether the driver on a node reads its own Node from the API server.
func (in install) asksForItself() bool { return in.backend == "ebs" }

// TestManagerIsProbed checks that the kubelet probes the manager, the master and the workers.
func TestManagerIsProbed(t *testing.T) {
	for _, in := range installs() {
		for id, pod := range pods(t, kustomized(t, in.folder)) {
			for _, c := range containers(pod) {
				if slices.Equal(c.Command, []string{"/stowage-manager"}) && (c.LivenessProbe == nil || c.ReadinessProbe == nil) {
					t.Errorf("%s: %s has not both probes", id, c.Name)
				}
			}
		}
	}
}

// TestTokens checks that exactly the containers that use the API server have a token for it.
func TestTokens(t *testing.T) {
	for _, in := range installs() {
		for id, pod := range pods(t, kustomized(t, in.folder)) {
			speakers := []string{"csi-provisioner", "csi-resizer", "csi-snapshotter", "csi-attacher", "manager", "master",
				"worker"}
			if strings.HasPrefix(id, "DaemonSet/") && in.asksForItself() {
				speakers = []string{"stowage"}
			}
			if strings.HasPrefix(id, "Deployment/") && in.asksForItself() {
				speakers = append(speakers, "stowage") // to identify the cluster
			}
			if auto := pod.Spec.AutomountServiceAccountToken; auto == nil || *auto {
				t.Errorf("%s: every container is given a token", id)
			}
			for _, c := range containers(pod) {
				has := slices.ContainsFunc(c.VolumeMounts,
					func(m corev1.VolumeMount) bool { return strings.HasPrefix(m.MountPath, "/var/run/secrets") })
				if want := slices.Contains(speakers, c.Name); has != want {
					t.Errorf("%s: %s has a token: %t, want %t", id, c.Name, has, want)
				}
			}
		}
	}
}

// nodeAccount returns the account of a pod on every node, and whether it has a token.
func (in install) nodeAccount(id string) (account string, token bool) {
	switch {
	case !in.cluster:
		return "stowage-" + in.backend + "-node", in.asksForItself()
	case id == localNode:
		return "stowage-local-worker", true
	case id == disksAgent:
		return "stowage-disks-worker", true
	default:
		return "stowage-disks", false
	}
}

// TestNodesHaveNoRights checks that pods on every node have an account without roles, and no token. Exceptions are
// drivers that read their own Node, and workers, which policies restrict to their node (TestLocalVolumesPolicy,
// TestDisksPolicy). These have a single token, and TestRights checks their roles.
func TestNodesHaveNoRights(t *testing.T) {
	for _, in := range installs() {
		for id, pod := range pods(t, kustomized(t, in.folder)) {
			if !strings.HasPrefix(id, "DaemonSet/") {
				continue
			}
			account, token := in.nodeAccount(id) // TestBindings checks its roles.
			if pod.Spec.ServiceAccountName != account {
				t.Errorf("%s runs as %s, want %s", id, pod.Spec.ServiceAccountName, account)
			}
			var given []string
			for _, v := range pod.Spec.Volumes {
				if v.Projected != nil || v.Secret != nil {
					given = append(given, v.Name)
				}
			}
			var want []string
			if token {
				want = []string{"api"}
			}
			if !slices.Equal(given, want) {
				t.Errorf("%s is given the tokens and secrets %q, want %q", id, given, want)
			}
		}
	}
}

// TestPorts checks that no two containers of a pod listen on the same port, and that each probe of a port uses an
// existing one.
func TestPorts(t *testing.T) {
	for _, in := range installs() {
		for id, pod := range pods(t, kustomized(t, in.folder)) {
			numbers, names := map[int32]string{}, map[string]bool{}
			for _, c := range containers(pod) {
				for _, p := range c.Ports {
					if other, taken := numbers[p.ContainerPort]; taken {
						t.Errorf("%s: %s and %s both have port %d", id, other, c.Name, p.ContainerPort)
					}
					numbers[p.ContainerPort] = c.Name
				}
			}
			for _, c := range containers(pod) {
				clear(names)
				for _, p := range c.Ports {
					names[p.Name] = true
				}
				for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
					if probe != nil && probe.HTTPGet != nil && !names[probe.HTTPGet.Port.StrVal] {
						t.Errorf("%s: a probe of %s asks port %s, which that container does not name", id, c.Name,
							probe.HTTPGet.Port.String())
					}
				}
			}
		}
	}
}
