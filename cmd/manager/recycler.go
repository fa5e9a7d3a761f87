package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stowage-csi/stowage/pkg/controllers/recycler"
)

// recyclerOptions are the flags of the recycler.
type recyclerOptions struct {
	options
	pod   string
	scrub recycler.Options
}

func recyclerCommand() *cobra.Command {
	o := &recyclerOptions{}
	cmd := &cobra.Command{
		Use:   "recycler",
		Short: "Scrub released PersistentVolumes and make them Available again",
		Long: `Scrub the PersistentVolumes that are released, of the policy Retain and bear the annotation stowage.dev/recycle=true, each by a
pod that mounts it, and make them Available again. It serves the volumes of any CSI driver. Of several recyclers one works at a time.`,
		Example: `  stowage-manager recycler --namespace=stowage-recycler --pod=recycler-0 --drivers=nfs.csi.stowage.dev,kubernetes.io/nfs`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.namespace, "namespace", "", "the recycler's own namespace: of its lease, and of the pods and claims that it makes")
	flags.StringVar(&o.pod, "pod", "", "the recycler's own pod, whose image the pods have that scrub")
	flags.StringVar(&o.scrub.Image, "image", "", "another image for them")
	flags.StringSliceVar(&o.scrub.Drivers, "drivers", nil, "the CSI drivers whose volumes are recycled; also kubernetes.io/nfs, kubernetes.io/iscsi and kubernetes.io/local-volume")
	flags.DurationVar(&o.scrub.Delay, "delay", time.Minute, "how long a volume is left alone after its release: kubelets stop pods meanwhile that were deleted by force")
	flags.DurationVar(&o.scrub.Deadline, "deadline", 12*time.Hour, "how long the scrub of one volume may take")
	flags.IntVar(&o.scrub.Attempts, "attempts", 3, "after how many failed scrubs a volume becomes Failed")
	flags.IntVar(&o.scrub.Workers, "workers", 8, "how many volumes are looked at at a time")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "a kubeconfig file (default: the pod's service account)")
	flags.StringVar(&o.httpEndpoint, "http-endpoint", "0", "an address such as :9817 for /metrics, /healthz and /readyz; 0 serves none")
	flags.StringVar(&o.logFormat, "log-format", "text", "text or json")
	flags.IntVarP(&o.verbosity, "v", "v", 0, "how much to log")
	flags.Float32Var(&o.qps, "kube-api-qps", 100, "how many requests a second the API server gets, on the average")
	flags.IntVar(&o.burst, "kube-api-burst", 200, "how many requests the API server gets at once")
	return cmd
}

func (o *recyclerOptions) check() error {
	switch s := o.scrub; {
	case o.namespace == "":
		return errors.New("--namespace is missing: name a namespace in which nobody else makes pods or claims")
	case s.Image == "" && o.pod == "":
		return errors.New("--pod is missing: name the recycler's own pod, or by --image the image of the pods that scrub")
	case len(s.Drivers) == 0:
		return errors.New("--drivers is missing: name the CSI drivers whose volumes are recycled, such as nfs.csi.stowage.dev")
	case s.Delay < 0:
		return fmt.Errorf("--delay is %s: it must not be negative", s.Delay)
	case s.Deadline < time.Second:
		return fmt.Errorf("--deadline is %s: it must be 1s at least", s.Deadline)
	case s.Attempts < 1:
		return fmt.Errorf("--attempts is %d: it must be 1 at least", s.Attempts)
	case s.Workers < 1:
		return fmt.Errorf("--workers is %d: it must be 1 at least", s.Workers)
	case o.logFormat != "text" && o.logFormat != "json":
		return fmt.Errorf("--log-format is %q: use text or json", o.logFormat)
	}
	return nil
}

func (o *recyclerOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	log := o.log()
	config, err := o.config()
	if err != nil {
		return err
	}
	probes := &health{}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme(), Logger: logr.FromSlogHandler(log.Handler()),
		Metrics:        probes.beside(o.httpEndpoint),
		Cache:          cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		LeaderElection: true, LeaderElectionID: o.lease(), LeaderElectionNamespace: o.namespace,
		LeaderElectionReleaseOnCancel: true, // Nothing of it works on when Start has returned: the process ends.
	})
	if err != nil {
		return fmt.Errorf("reach Kubernetes: %w", err)
	}
	probes.cache = manager.GetCache() // Before anything is served.
	if o.scrub.Image == "" {
		own := &corev1.Pod{}
		if err := manager.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: o.namespace, Name: o.pod}, own); err != nil {
			return fmt.Errorf("--pod is %q, and its image is not to be had: %w", o.pod, err)
		}
		o.scrub.Image = own.Spec.Containers[0].Image
	}
	o.scrub.Namespace, o.scrub.Metrics = o.namespace, registry.Registry
	if err := recycler.Add(manager, o.scrub); err != nil {
		return err
	}
	log.Info("recycling released volumes", "drivers", o.scrub.Drivers, "version", version)
	return manager.Start(ctx)
}

// lease names the lease by which one recycler of the same drivers leads.
func (o *recyclerOptions) lease() string {
	drivers := slices.Clone(o.scrub.Drivers)
	slices.Sort(drivers)
	return fmt.Sprintf("stowage-recycler-%x", sha256.Sum256([]byte(strings.Join(drivers, ","))))[:len("stowage-recycler-")+16]
}
