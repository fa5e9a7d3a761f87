package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
)

func written(t *testing.T) layout.Layout {
	t.Helper()
	l, err := layout.New(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(l, 2, 1234); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestCertificates verifies each certificate against its authority, and checks its content.
func TestCertificates(t *testing.T) {
	l := written(t)
	for _, test := range []struct {
		file, authority, name, group, host string
	}{
		{"apiserver", "ca", "kube-apiserver", "", "127.0.0.1"},
		{"apiserver", "ca", "kube-apiserver", "", layout.ControlPlane},
		{"apiserver", "ca", "kube-apiserver", "", layout.APIService},
		{"apiserver", "ca", "kube-apiserver", "", "kubernetes.default.svc"},
		{"apiserver-kubelet-client", "ca", "kube-apiserver", "system:masters", ""},
		{"admin", "ca", "kubernetes-admin", "system:masters", ""},
		{"controller-manager", "ca", "system:kube-controller-manager", "", ""},
		{"scheduler", "ca", "system:kube-scheduler", "", ""},
		{"proxy", "ca", "system:kube-proxy", "", ""},
		{"node-1", "ca", "system:node:node-1", "system:nodes", layout.NodeAddress(1)},
		{"node-2", "ca", "system:node:node-2", "system:nodes", layout.NodeAddress(2)},
		{"front-proxy-client", "front-proxy-ca", "front-proxy-client", "", ""},
	} {
		pair, err := tls.LoadX509KeyPair(l.Certificate(test.file+".crt"), l.Certificate(test.file+".key"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(l.Certificate(test.authority + ".crt"))
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(text)
		usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: usage, DNSName: test.host}); err != nil {
			t.Errorf("%s: %v", test.file, err)
		}
		if subject := pair.Leaf.Subject; subject.CommonName != test.name ||
			test.group != "" && !slices.Equal(subject.Organization, []string{test.group}) {
			t.Errorf("%s is for %v", test.file, subject)
		}
	}
}

// TestKubeconfigs checks the server and user of each kubeconfig, and that other users cannot read it.
func TestKubeconfigs(t *testing.T) {
	l := written(t)
	for path, server := range map[string]string{
		l.Kubeconfig():                            "https://127.0.0.1:1234",
		l.Config("node-2.kubeconfig"):             "https://" + layout.ControlPlane + ":6443",
		l.Config("scheduler.kubeconfig"):          "https://" + layout.ControlPlane + ":6443",
		l.Config("controller-manager.kubeconfig"): "https://" + layout.ControlPlane + ":6443",
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var config struct {
			Clusters []struct{ Cluster struct{ Server string } }
			Users    []struct {
				User struct {
					Certificate []byte `json:"client-certificate-data"`
					Key         []byte `json:"client-key-data"`
				}
			}
		}
		if err := json.Unmarshal(text, &config); err != nil || len(config.Clusters) != 1 || len(config.Users) != 1 {
			t.Fatalf("%s holds %s (%v)", path, text, err)
		}
		if got := config.Clusters[0].Cluster.Server; got != server {
			t.Errorf("%s leads to %s, not %s", path, got, server)
		}
		if _, err := tls.X509KeyPair(config.Users[0].User.Certificate, config.Users[0].User.Key); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v (%v)", path, info.Mode(), err)
		}
	}
}
