package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
)

// Write creates all keys, certificates and kubeconfigs of a cluster with the given number of nodes. The host reaches
// the API server at the port of its loopback address.
func Write(l layout.Layout, nodes, port int) error {
	dir := l.Certificate("")
	for _, folder := range []string{dir, l.Config("")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	ca, err := newAuthority(dir, "ca", "kubernetes")
	if err != nil {
		return err
	}
	for _, r := range append(servers(), users(nodes)...) {
		if err := ca.issue(r); err != nil {
			return fmt.Errorf("certificate %s: %w", r.file, err)
		}
	}
	if err := frontProxy(dir); err != nil {
		return err
	}
	return writeKubeconfigs(l, nodes, port)
}

// servers returns the requests for the API server's two certificates: as a server, and as a client of the kubelets.
func servers() []request {
	return []request{
		{
			file: "apiserver", name: "kube-apiserver",
			hosts: []string{
				"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
			},
			addresses: []string{"127.0.0.1", layout.ControlPlane, layout.APIService},
		},
		{file: "apiserver-kubelet-client", name: "kube-apiserver", groups: []string{"system:masters"}},
	}
}

// users returns the requests for the users that Kubernetes' own roles are bound to.
func users(nodes int) []request {
	list := []request{
		{file: "admin", name: "kubernetes-admin", groups: []string{"system:masters"}},
		{file: "controller-manager", name: "system:kube-controller-manager"},
		{file: "scheduler", name: "system:kube-scheduler"},
		{file: "proxy", name: "system:kube-proxy"},
	}
	for number := 1; number <= nodes; number++ {
		node := layout.NodeName(number)
		list = append(list, request{
			file: node, name: "system:node:" + node, groups: []string{"system:nodes"},
			hosts: []string{node}, addresses: []string{layout.NodeAddress(number), "127.0.0.1"},
		})
	}
	return list
}

// frontProxy creates the API server's client certificate for aggregated API servers, and the key of service accounts'
// tokens.
func frontProxy(dir string) error {
	ca, err := newAuthority(dir, "front-proxy-ca", "front-proxy-ca")
	if err != nil {
		return err
	}
	if err := ca.issue(request{file: "front-proxy-client", name: "front-proxy-client"}); err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := writePEM(dir+"/service-accounts.pub", "PUBLIC KEY", public); err != nil {
		return err
	}
	return writeKey(dir, "service-accounts", key)
}
