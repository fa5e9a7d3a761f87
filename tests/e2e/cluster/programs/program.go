package programs

import "slices"

// Program is one binary, and how to build it.
type Program struct {
	Name    string
	Package string // an argument of go build
	// Pinned is a module that is built with its own requirements. If it is nil, the tools module's requirements apply.
	Pinned  *Pinned
	Version string // the module of the tools module that determines the version
	// Variables are set to the version when the program is linked.
	Variables []string
	Tags      string
	Cgo       bool // still linked statically
	Test      bool // a test binary
}

// Pinned is a module whose contents are known.
type Pinned struct {
	Module, Version string
	Sum             string // as in go.sum
}

func containerd() *Pinned {
	return &Pinned{Module: "github.com/containerd/containerd/v2", Version: "v2.4.2", Sum: containerdSum}
}

func runc() *Pinned {
	return &Pinned{Module: "github.com/opencontainers/runc", Version: "v1.5.2", Sum: runcSum}
}

const (
	kubernetes    = "k8s.io/kubernetes"
	snapshotter   = "github.com/kubernetes-csi/external-snapshotter/v8"
	containerdSum = "h1:p6Qg+xbEz8lvwdhHDx0U469xENvp4LgGBx+E7djXkGw="
	runcSum       = "h1:eUUowc2WJCnFYzI87C1WqRcu356Dk/wsoi90y+2wEfE="
)

// versionVariables are the variables from which `kubectl version`, the kubelet and the API server take their version.
func versionVariables() []string {
	return []string{"k8s.io/component-base/version.gitVersion", "k8s.io/client-go/pkg/version.gitVersion"}
}

// Nodes lists the programs of the nodes and the control plane.
func Nodes() []Program {
	noSnapshotters := "no_btrfs no_devmapper no_zfs"
	version := []string{"github.com/containerd/containerd/v2/version.Version"}
	return []Program{
		{Name: "kube", Package: "./kube", Version: kubernetes, Variables: versionVariables()},
		{Name: "containerd", Package: "./cmd/containerd", Pinned: containerd(), Variables: version, Tags: noSnapshotters},
		{Name: "containerd-shim-runc-v2", Package: "./cmd/containerd-shim-runc-v2", Pinned: containerd(), Variables: version},
		{Name: "ctr", Package: "./cmd/ctr", Pinned: containerd(), Variables: version, Tags: noSnapshotters},
		{Name: "runc", Package: ".", Pinned: runc(), Tags: "seccomp netgo osusergo urfave_cli_no_docs", Cgo: true},
	}
}

// Sidecars lists the sidecars of a CSI driver, and the snapshot controller.
func Sidecars() []Program {
	main := []string{"main.version"}
	sidecar := func(name, module string) Program {
		return Program{Name: name, Package: module + "/cmd/" + name, Version: module, Variables: main}
	}
	return []Program{
		sidecar("csi-provisioner", "github.com/kubernetes-csi/external-provisioner/v6"),
		sidecar("csi-attacher", "github.com/kubernetes-csi/external-attacher/v4"),
		sidecar("csi-resizer", "github.com/kubernetes-csi/external-resizer/v2"),
		sidecar("csi-snapshotter", snapshotter),
		sidecar("snapshot-controller", snapshotter),
		{Name: "csi-node-driver-registrar", Package: "./standins/node-driver-registrar"},
		{Name: "livenessprobe", Package: "./standins/livenessprobe"},
	}
}

// Agnhost is the program of the image that most of Kubernetes' tests use.
func Agnhost() Program {
	return Program{Name: "agnhost", Package: kubernetes + "/test/images/agnhost"}
}

// Suite lists the programs that run Kubernetes' official end-to-end tests.
func Suite() []Program {
	return []Program{
		{Name: "e2e.test", Package: kubernetes + "/test/e2e", Version: kubernetes, Variables: versionVariables(), Test: true},
		{Name: "ginkgo", Package: "github.com/onsi/ginkgo/v2/ginkgo"},
	}
}

// All lists every program.
func All() []Program {
	return slices.Concat(Nodes(), Sidecars(), []Program{Agnhost()}, Suite())
}

// Links are the names under which kube is called.
func Links() []string {
	return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet",
		"kubectl"}
}
