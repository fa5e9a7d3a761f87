package controlplane

import (
	"fmt"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
)

const (
	etcdAddress = "127.0.0.1:2379"
	etcdPeers   = "http://127.0.0.1:2380"
)

// etcd returns the arguments of etcd. It need not wait for the disk, because its data is deleted with the cluster.
func etcd(l layout.Layout) []string {
	return []string{
		"--name=stowage", "--data-dir=" + l.Path("etcd"), "--unsafe-no-fsync",
		"--listen-client-urls=http://" + etcdAddress, "--advertise-client-urls=http://" + etcdAddress,
		"--listen-peer-urls=" + etcdPeers, "--initial-advertise-peer-urls=" + etcdPeers,
		"--initial-cluster=stowage=" + etcdPeers,
	}
}

// server returns the flags that kubeadm sets, with two exceptions: a node has only one address, and the control plane
// reaches webhooks at their pods, because no kube-proxy runs beside it.
func server(l layout.Layout) []string {
	pki := l.Certificate
	return []string{
		"--advertise-address=" + layout.ControlPlane,
		fmt.Sprintf("--secure-port=%d", layout.APIPort),
		"--etcd-servers=http://" + etcdAddress,
		"--service-cluster-ip-range=" + layout.Services,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--cert-dir=" + pki(""),
		"--client-ca-file=" + pki("ca.crt"),
		"--tls-cert-file=" + pki("apiserver.crt"),
		"--tls-private-key-file=" + pki("apiserver.key"),
		"--kubelet-certificate-authority=" + pki("ca.crt"),
		"--kubelet-client-certificate=" + pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + pki("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + pki("service-accounts.pub"),
		"--service-account-signing-key-file=" + pki("service-accounts.key"),
		"--requestheader-client-ca-file=" + pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + pki("front-proxy-client.crt"),
		"--proxy-client-key-file=" + pki("front-proxy-client.key"),
		"--enable-aggregator-routing=true",
	}
}

func controllerManager(l layout.Layout) []string {
	return append(asUser(l, "controller-manager"),
		"--use-service-account-credentials=true",
		"--root-ca-file="+l.Certificate("ca.crt"),
		"--cluster-signing-cert-file="+l.Certificate("ca.crt"),
		"--cluster-signing-key-file="+l.Certificate("ca.key"),
		"--service-account-private-key-file="+l.Certificate("service-accounts.key"),
		"--requestheader-client-ca-file="+l.Certificate("front-proxy-ca.crt"),
		// The default folder would be created in the host's /usr.
		"--flex-volume-plugin-dir="+l.Path("flexvolumes"),
	)
}

func scheduler(l layout.Layout) []string { return asUser(l, "scheduler") }

// asUser returns the flags that the controller manager and the scheduler share. Each has one instance, so that no
// leader election is needed.
func asUser(l layout.Layout, user string) []string {
	kubeconfig := l.Config(user + ".kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1", "--leader-elect=false",
	}
}
