package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/openfiles"
	"github.com/stowage-csi/stowage/pkg/printable"
)

// process has the flags of every command.
type process struct {
	namespace, kubeconfig, httpEndpoint, logFormat string
	verbosity, burst                               int
	qps                                            float32
	files                                          openfiles.Bound
	metrics                                        prometheus.Gatherers // to serve besides the controllers' metrics
}

// bind adds the flags except the namespace, which has another meaning for each command. The port is the one in the
// manifests.
func (p *process) bind(cmd *cobra.Command, port int) {
	flags := cmd.Flags()
	flags.StringVar(&p.kubeconfig, "kubeconfig", "", "a kubeconfig file (default: the pod's service account)")
	flags.StringVar(&p.httpEndpoint, "http-endpoint", "0",
		fmt.Sprintf("an address such as :%d for /metrics, /healthz and /readyz; 0, or an empty text, serves none", port))
	flags.StringVar(&p.logFormat, "log-format", "text", "text or json")
	flags.IntVarP(&p.verbosity, "v", "v", 0, "how much to log")
	p.files.Bind(flags, openfiles.Usual)
}

// bindRate adds the flags of a command that may send many requests to the API server.
func (p *process) bindRate(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Float32Var(&p.qps, "kube-api-qps", 100, "how many requests a second the API server gets, on the average")
	flags.IntVar(&p.burst, "kube-api-burst", 200, "how many requests the API server gets at once")
}

func (p *process) check() error {
	if p.logFormat != "text" && p.logFormat != "json" {
		return fmt.Errorf("--log-format is %q: use text or json", p.logFormat)
	}
	if p.verbosity < 0 { // It would hide errors.
		return fmt.Errorf("-v is %d: it must be 0 at least", p.verbosity)
	}
	return p.files.Check()
}

// checkRate checks the flags of bindRate.
func (p *process) checkRate() error {
	switch {
	case p.qps == 0 || !isRate(p.qps):
		return fmt.Errorf("--kube-api-qps is %g: it must be a number above 0", p.qps)
	case p.burst < 1:
		return fmt.Errorf("--kube-api-burst is %d: it must be 1 at least", p.burst)
	}
	return nil
}

// isRate reports whether a flag's value can be a number of requests per second. NaN cannot: it fails each comparison.
func isRate(value float32) bool { return value >= 0 && value <= math.MaxFloat32 }

// start runs the controllers that add registers, until the context ends. With a LeaderElectionID, one of several
// processes works at a time.
func (p *process) start(ctx context.Context, log *slog.Logger, o ctrl.Options, add func(ctrl.Manager) error) error {
	if err := p.files.Apply(); err != nil {
		return err
	}
	config, err := p.config()
	if err != nil {
		return err
	}
	o.Scheme, o.Logger, o.Metrics.BindAddress = scheme(), logr.FromSlogHandler(log.Handler()), "0"
	// If a resource is older than this program, the API server would drop its new fields, such as the source of a volume,
	// and report success.
	o.Client.FieldValidation = metav1.FieldValidationStrict
	if o.LeaderElectionID != "" {
		o.LeaderElection, o.LeaderElectionNamespace = true, p.namespace
		o.LeaderElectionReleaseOnCancel = true // When Start has returned, no work continues: the process ends.
	}
	// An API server that does not answer would delay the end: no context ends what a new manager asks it.
	manager, err := deadline.Do(ctx, deadline.Call{Name: "preparing the controllers"},
		func(context.Context) (ctrl.Manager, error) { return prepare(config, o, add) }, nil)
	if err != nil {
		return err
	}
	p.metrics = append(p.metrics, registry.Registry)
	server, err := p.serveHTTP(ctx, &health{manager.GetCache()})
	if err != nil {
		return err
	}
	if server != nil {
		err = manager.Add(server)
	}
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}

// prepare returns a manager with the controllers that add registers.
func prepare(config *rest.Config, o ctrl.Options, add func(ctrl.Manager) error) (ctrl.Manager, error) {
	manager, err := ctrl.NewManager(config, o)
	if err != nil {
		return nil, fmt.Errorf("reach Kubernetes: %w", err)
	}
	return manager, add(manager)
}

// scheme returns a scheme with the types that the controllers read and write.
func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{coordinationv1.AddToScheme, corev1.AddToScheme,
		storagev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // The types are the same each time.
		}
	}
	return s
}

func (p *process) config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig is %q: %w", p.kubeconfig, err)
	}
	config.QPS, config.Burst = p.qps, p.burst
	config.UserAgent = "stowage-manager/" + version
	return config, nil
}

func (p *process) log() *slog.Logger {
	leveled := &slog.HandlerOptions{Level: slog.Level(-p.verbosity)}
	var handler slog.Handler = slog.NewTextHandler(os.Stderr, leveled)
	if p.logFormat == "json" {
		handler = slog.NewJSONHandler(printable.JSON(os.Stderr), leveled)
	}
	log := slog.New(handler)
	klog.SetSlogLogger(log)
	ctrl.SetLogger(logr.FromSlogHandler(handler))
	return log
}
