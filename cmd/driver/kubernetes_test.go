package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/stowage-csi/stowage/pkg/backends"
	fake "github.com/stowage-csi/stowage/tests/cloud/ec2"
	"github.com/stowage-csi/stowage/tests/cloud/imds"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

const clusterUID = "5ac2a1b8-7f4e-4b0c-9f0e-3c1a2b3c4d5e"

const nodeName = "ip-10-0-0-1.internal"

func theNode() corev1.Node {
	return corev1.Node{
		TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: map[string]string{
			"topology.kubernetes.io/zone": "region-1a", "topology.kubernetes.io/region": "region-1",
			"node.kubernetes.io/instance-type": "m5.tiny",
		}},
		Spec: corev1.NodeSpec{ProviderID: "aws:///region-1a/" + region.NodeA},
	}
}

// apiServer is the part of Kubernetes' API that the driver uses: it knows one node and kube-system, and lets holders of
// the token get them.
func apiServer(t *testing.T, node func() corev1.Node) *rest.Config {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure}
		var answer any = status
		code := http.StatusOK
		switch name := strings.TrimPrefix(r.URL.Path, "/api/v1/nodes/"); {
		case r.Header.Get("Authorization") == "Bearer other":
			code = http.StatusForbidden
		case r.Header.Get("Authorization") != "Bearer token":
			code = http.StatusUnauthorized
		case r.Method != http.MethodGet:
			code = http.StatusMethodNotAllowed
		case name == "broken":
			code = http.StatusInternalServerError
		case name == "cut":
			w.Header().Set("Content-Length", "100")
			return
		case name == "strange": // keeps the status 200
		case name == "silent":
			<-r.Context().Done()
			return
		case r.URL.Path == "/api/v1/namespaces/kube-system":
			answer = corev1.Namespace{TypeMeta: metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"},
				ObjectMeta: metav1.ObjectMeta{UID: clusterUID}}
		case name != nodeName:
			code = http.StatusNotFound
		default:
			answer = node()
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pemOf(server), 0o600); err != nil {
		t.Fatal(err)
	}
	return &rest.Config{Host: server.URL, BearerToken: "token", TLSClientConfig: rest.TLSClientConfig{CAFile: ca}}
}

func TestNodeObject(t *testing.T) {
	config := apiServer(t, theNode)
	for _, row := range []struct {
		name string
		edit func(*rest.Config)
		want string // of the error
	}{
		{nodeName, nil, ""},
		{"ip-10-0-0-2.internal", nil, "does not exist (404)"},
		{nodeName, func(c *rest.Config) { c.BearerToken = "other" },
			"may not be read (403): let the pod's service account get nodes"},
		{nodeName, func(c *rest.Config) { c.BearerToken = "" }, "(401)"},
		{nodeName, func(c *rest.Config) { c.CAFile = "" }, "out of reach"},
		{nodeName, func(c *rest.Config) { c.Host = "https://127.0.0.1:1" }, "out of reach"},
		{nodeName, func(c *rest.Config) { c.CAFile = "/nowhere" }, "cannot be asked for"},
		{"broken", nil, "answers with status 500"},
		{"cut", nil, "cannot be read to its end"},
		{"strange", nil, `answers with a "Status"`},
	} {
		edited := rest.CopyConfig(config)
		if row.edit != nil {
			row.edit(edited)
		}
		node, err := readObject(t.Context(), edited, "Node", "nodes", row.name)
		info := nodeInfo(node)
		if row.want != "" {
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s: got %+v, %v; want a failure that mentions %q", row.name, info, err, row.want)
			}
			again := row.name == "broken" || row.name == "cut" || row.want == "out of reach"
			if errors.As(err, new(unreachable)) != again {
				t.Errorf("%s: asking again may help: %v, want %v", row.name, !again, again)
			}
			continue
		}
		want := backends.NodeInfo{ProviderID: "aws:///region-1a/" + region.NodeA, Type: "m5.tiny", Zone: "region-1a",
			Region: "region-1"}
		if info != want || err != nil {
			t.Errorf("%s: got %+v, %v; want %+v", row.name, info, err, want)
		}
	}
	// Stimulus: the API server never answers.
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := readObject(ctx, config, "Node", "nodes", "silent"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent API: got %v, want the end of the context", err)
	}
}

// onInstance puts the process on an EC2 instance, outside of any pod.
func onInstance(t *testing.T) (*imds.Service, *fake.Server) {
	t.Helper()
	cloud := fake.New(region.Quick())
	cloud.AddInstance(fake.Instance{ID: region.NodeA, Type: "m5.tiny", Zone: "region-1a", Interfaces: 2})
	api := httptest.NewServer(cloud)
	t.Cleanup(api.Close)
	service := imds.Serve(t, imds.Document{InstanceID: region.NodeA, InstanceType: "m5.tiny",
		AvailabilityZone: "region-1a", Region: "region-1"})
	for name, value := range map[string]string{
		"AWS_EC2_METADATA_SERVICE_ENDPOINT": service.URL, "AWS_EC2_METADATA_DISABLED": "", "AWS_ENDPOINT_URL": api.URL,
		"AWS_REGION":         "",
		"AWS_DEFAULT_REGION": "", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": region.SecretKey,
		"AWS_PROFILE":     "",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "KUBERNETES_SERVICE_HOST": "",
		"KUBERNETES_SERVICE_PORT": "",
	} {
		t.Setenv(name, value)
	}
	return service, cloud
}

// pemOf returns the server's self-signed certificate.
func pemOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// mountAccount puts a service account where the kubelet mounts it into pods, in this process's own mount namespace.
func mountAccount(t *testing.T, files map[string][]byte) {
	t.Helper()
	const run = "/run" // /var/run leads there
	if err := unix.Mount("tmpfs", run, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(run, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	dir := "/var/run/secrets/kubernetes.io/serviceaccount"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// inPod puts the process into a pod, with regard to its service account.
func inPod(t *testing.T) { inPodOn(t, theNode) }

func inPodOn(t *testing.T, node func() corev1.Node) {
	t.Helper()
	config := apiServer(t, node)
	host, port, ok := strings.Cut(strings.TrimPrefix(config.Host, "https://"), ":")
	if !ok {
		t.Fatalf("the API is at %s", config.Host)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	t.Setenv("KUBERNETES_SERVICE_PORT", port)
	ca, err := os.ReadFile(config.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	mountAccount(t, map[string][]byte{"token": []byte(config.BearerToken), "ca.crt": ca})
}

func TestNodeOfEBS(t *testing.T) {
	for _, row := range []struct {
		name string
		args []string
		edit func(t *testing.T, service *imds.Service)
	}{
		{"by the metadata service", nil, func(*testing.T, *imds.Service) {}},
		{"by the Node object", []string{"--node-name=" + nodeName},
			func(t *testing.T, service *imds.Service) { service.Be(imds.Far); inPod(t) }},
		{"by the flag", []string{"--node-id=" + region.NodeA}, func(*testing.T, *imds.Service) {}},
		{"by the flag alone", []string{"--node-id=" + region.NodeA}, func(t *testing.T, service *imds.Service) {
			service.Be(imds.Disabled)
			t.Setenv("AWS_REGION", "region-1")
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			service, cloud := onInstance(t)
			row.edit(t, service)
			config := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(config, []byte("clusterID: production"), 0o600); err != nil {
				t.Fatal(err)
			}
			conn, stop := served(t, append([]string{"--backend=ebs", "--config=" + config}, row.args...)...)
			defer stop()
			info, err := csi.NewNodeClient(conn).NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{}, grpc.WaitForReady(true))
			if err != nil {
				t.Fatal(err)
			}
			zone := info.GetAccessibleTopology().GetSegments()["topology.kubernetes.io/zone"]
			if info.GetNodeId() != region.NodeA || zone != "region-1a" || info.GetMaxVolumesPerNode() != 10 {
				t.Errorf("the node is %v, want %s in region-1a with 10 volumes; EC2 was asked for %v", info, region.NodeA,
					cloud.Calls())
			}
		})
	}
}

// TestClusterOfEBS starts controllers without a clusterID in the configuration.
func TestClusterOfEBS(t *testing.T) {
	onInstance(t)
	t.Setenv("AWS_REGION", "region-1")
	controller := []string{"controller", "--backend=ebs", "--data-dir=" + t.TempDir(),
		"--endpoint=" + filepath.Join(t.TempDir(), "csi.sock")}
	refused(t, "clusterID is missing in the configuration, and which cluster this is cannot be found out: the namespace "+
		"kube-system was not asked for", controller...)
	inPod(t)
	config, err := rest.InClusterConfig()
	if err != nil {
		t.Fatal(err)
	}
	if id, err := clusterID(t.Context(), config); id != clusterUID || err != nil {
		t.Errorf("the cluster is %q, %v; want %s", id, err, clusterUID)
	}
	config.BearerToken, config.BearerTokenFile = "other", ""
	if id, err := clusterID(t.Context(), config); err == nil || !strings.Contains(err.Error(), "get namespaces") {
		t.Errorf("without the right: %q, %v", id, err)
	}
}

func TestNodeOfEBSIsNotFound(t *testing.T) {
	service, _ := onInstance(t)
	service.Be(imds.Strange)
	node := []string{"node", "--backend=ebs", "--data-dir=" + t.TempDir()}
	refused(t, "the metadata service at "+service.URL+" knows nothing of it (404): is this EC2?; Kubernetes was not "+
		"asked, because --node-name is not set; --node-id is not set", node...)
	refused(t, `the Node object "n" was not asked for, since this is no pod`, append(node, "--node-name=n")...)
	refused(t, `the node ID "worker-1" is not that of an EC2 instance`, append(node, "--node-id=worker-1")...)
	refused(t, "unknown flag: --node-name", "controller", "--node-name=n")
	inPod(t)
	refused(t, `the Node object "n" does not exist (404)`, append(node, "--node-name=n")...)
}

// TestHostNames covers the backends for which a host's name has a meaning.
func TestHostNames(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"local", "nfs"} {
		conn, stop := served(t, "--backend="+name)
		info, err := csi.NewNodeClient(conn).NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{}, grpc.WaitForReady(true))
		if err != nil || info.GetNodeId() != host {
			t.Errorf("%s: the node is %v, %v; want %s", name, info, err, host)
		}
		stop()
	}
}
