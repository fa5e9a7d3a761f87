package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/pki"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/programs"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/store"
)

// token is the administrator's token, on the loopback addresses of this run only.
const token = "pools"

// plane is a control plane with a driver and its sidecar.
type plane struct {
	folder   string
	layout   layout.Layout
	programs map[string]string
	address  string // of the API server
	config   *rest.Config
	kube     kubernetes.Interface
	client   client.Client
	socket   string
	group    sync.WaitGroup // of all programs
	pids     map[string]int // of programs, by name
	more     []string       // flags of the API server
}

func newPlane(folder string) *plane {
	return &plane{folder: folder, programs: map[string]string{}, pids: map[string]int{},
		socket: filepath.Join(folder, "csi.sock")}
}

// start starts everything except the manager.
func (p *plane) start(ctx context.Context) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	if err := p.prepare(ctx); err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	return p.startClients(ctx, p.layout, ports[0])
}

// begin starts etcd and the API server.
func (p *plane) begin(ctx context.Context) error {
	if err := p.build(ctx); err != nil {
		return err
	}
	var err error
	if p.layout, err = layout.New(p.folder); err != nil {
		return err
	}
	if err := pki.Write(p.layout, 0, 1); err != nil {
		return err
	}
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	p.address = "127.0.0.1:" + ports[0]
	p.config = &rest.Config{
		Host: "https://" + p.address, BearerToken: token, QPS: 2000, Burst: 2000,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}
	if err := p.startAPI(ctx, p.layout, ports); err != nil {
		return err
	}
	return p.connect()
}

// build finds or builds the programs.
func (p *plane) build(ctx context.Context) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	entries := &store.Store{Dir: filepath.Join(cache, "stowage", "cluster"), Out: os.Stderr, Label: "pools"}
	builder, err := programs.NewBuilder(ctx, "tests/e2e/cluster/tools", entries)
	if err != nil {
		return err
	}
	for _, one := range append(programs.Nodes()[:1], programs.Sidecars()[:1]...) {
		if p.programs[one.Name], err = builder.Build(ctx, one); err != nil {
			return err
		}
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		p.programs[name] = filepath.Join(p.folder, name)
		if err := os.Symlink(p.programs["kube"], p.programs[name]); err != nil {
			return err
		}
	}
	for name, source := range map[string]string{"stowage": "./cmd/driver", "stowage-manager": "./cmd/manager"} {
		p.programs[name] = filepath.Join(p.folder, name)
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", p.programs[name], source).CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", source, err, out)
		}
	}
	return nil
}

func (p *plane) startAPI(ctx context.Context, l layout.Layout, ports []string) error {
	etcd, peers := "http://127.0.0.1:"+ports[1], "http://127.0.0.1:"+ports[2]
	_, err := p.run(ctx, "etcd", "--data-dir="+l.Path("data"), "--unsafe-no-fsync", "--name=pools", "--log-level=error",
		"--listen-client-urls="+etcd, "--advertise-client-urls="+etcd, "--listen-peer-urls="+peers,
		"--initial-advertise-peer-urls="+peers, "--initial-cluster=pools="+peers)
	if err != nil {
		return err
	}
	for file, text := range map[string]string{
		"tokens.csv":  token + `,admin,admin,"system:masters"` + "\n",
		"audit.yaml":  `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}`,
		"kube.config": p.kubeconfig("https://" + p.address),
	} {
		if err := os.WriteFile(l.Path(file), []byte(text), 0o600); err != nil {
			return err
		}
	}
	keys := l.Certificate("service-accounts")
	_, err = p.run(ctx, "kube-apiserver", append(p.more, "--etcd-servers="+etcd, "--bind-address=127.0.0.1",
		"--secure-port="+ports[0],
		"--cert-dir="+l.Path("served"), "--token-auth-file="+l.Path("tokens.csv"), "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes", "--service-account-key-file="+keys+".pub",
		"--service-account-signing-key-file="+keys+".key",
		"--service-cluster-ip-range=10.0.0.0/24", "--audit-policy-file="+l.Path("audit.yaml"),
		"--audit-log-path="+l.Path("audit.log"))...)
	if err != nil {
		return err
	}
	return p.until(ctx, "the API server", func() error {
		api, err := rest.HTTPClientFor(p.config)
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.config.Host+"/readyz", nil)
		if err != nil {
			return err
		}
		answer, err := api.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close() //nolint:errcheck // Nothing was written to it.
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		return nil
	})
}

// kubeconfig returns the administrator's kubeconfig, for an API server or a proxy in front of it.
func (p *plane) kubeconfig(server string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: %q}}]}
`, server, token)
}

// startClients starts Kubernetes' controllers, the driver and csi-provisioner.
func (p *plane) startClients(ctx context.Context, l layout.Layout, port string) error {
	config := "--kubeconfig=" + l.Path("kube.config")
	for _, argv := range [][]string{
		{"kube-controller-manager", config, "--leader-elect=false", "--use-service-account-credentials=true",
			"--secure-port=0",
			"--service-account-private-key-file=" + l.Certificate("service-accounts.key"),
			"--flex-volume-plugin-dir=" + l.Path("flex")},
		{"stowage", "standalone", "--backend=memory", "--endpoint=" + p.socket, "--data-dir=" + l.Path("driver"),
			"--node-id=node",
			"--http-endpoint=127.0.0.1:" + port},
	} {
		if _, err := p.run(ctx, argv[0], argv[1:]...); err != nil {
			return err
		}
	}
	if err := p.until(ctx, "the driver", func() error { _, err := os.Stat(p.socket); return err }); err != nil {
		return err
	}
	_, err := p.run(ctx, "csi-provisioner", config, "--csi-address="+p.socket, "--kube-api-qps=50", "--kube-api-burst=100",
		"--worker-threads=100") // The memory backend's volumes are directories, without a filesystem type.
	return err
}

// run starts a program that ends with the context, or when stop is called.
func (p *plane) run(ctx context.Context, name string, args ...string) (stop func(), err error) {
	out, err := os.OpenFile(filepath.Join(p.folder, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() //nolint:errcheck // The program has its own.
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, p.programs[name], args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	p.pids[name] = cmd.Process.Pid
	ended := make(chan struct{})
	p.group.Go(func() {
		_ = cmd.Wait() // It is killed.
		close(ended)
	})
	return func() { cancel(); <-ended }, nil
}

// until repeats a check until it returns no error, for two minutes.
func (p *plane) until(ctx context.Context, what string, ask func() error) error {
	return p.each(ctx, what, 100*time.Millisecond, ask)
}

// soon does the same at shorter intervals, for measurements.
func (p *plane) soon(ctx context.Context, what string, ask func() error) error {
	return p.each(ctx, what, 5*time.Millisecond, ask)
}

func (p *plane) each(ctx context.Context, what string, pause time.Duration, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		case <-time.After(pause):
		}
	}
}

func freePorts(count int) (ports []string, err error) {
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // It ends at once.
		if err != nil {
			return nil, err
		}
		defer listener.Close() //nolint:errcheck // Nothing was sent.
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}
