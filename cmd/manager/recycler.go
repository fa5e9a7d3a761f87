package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
	process
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
	flags.StringVar(&o.namespace, "namespace", "",
		"the recycler's own namespace: of its lease, and of the pods and claims that it makes")
	flags.StringVar(&o.pod, "pod", "", "the recycler's own pod, whose image the pods have that scrub")
	flags.StringVar(&o.scrub.Image, "image", "", "another image for them")
	flags.StringSliceVar(&o.scrub.Drivers, "drivers", nil,
		"the CSI drivers whose volumes are recycled; also kubernetes.io/nfs, kubernetes.io/iscsi and "+
			"kubernetes.io/local-volume")
	flags.DurationVar(&o.scrub.Delay, "delay", time.Minute,
		"how long a volume is left alone after its release: kubelets stop pods meanwhile that were deleted by force")
	flags.DurationVar(&o.scrub.Deadline, "deadline", 12*time.Hour, "how long the scrub of one volume may take")
	flags.IntVar(&o.scrub.Attempts, "attempts", 3, "after how many failed scrubs a volume becomes Failed")
	flags.IntVar(&o.scrub.Workers, "workers", 8, "how many volumes are looked at at a time")
	o.bind(cmd, 9817)
	o.bindRate(cmd)
	return cmd
}

func (o *recyclerOptions) check() error {
	switch s := o.scrub; {
	case o.namespace == "":
		return errors.New("--namespace is missing: name a namespace in which nobody else makes pods or claims")
	case s.Image == "" && o.pod == "":
		return errors.New("--pod is missing: name the recycler's own pod, or by --image the image of the pods that scrub")
	case len(s.Drivers) == 0:
		return errors.New("--drivers is missing: name the CSI drivers whose volumes are recycled, such as " +
			"nfs.csi.stowage.dev")
	case slices.Contains(s.Drivers, ""): // Volumes of other kinds, such as hostPath, have no driver's name.
		return errors.New("--drivers has an empty name: leave out a comma too many")
	case s.Delay < 0:
		return fmt.Errorf("--delay is %s: it must not be negative", s.Delay)
	case s.Deadline < time.Second:
		return fmt.Errorf("--deadline is %s: it must be 1s at least", s.Deadline)
	case s.Attempts < 1:
		return fmt.Errorf("--attempts is %d: it must be 1 at least", s.Attempts)
	case s.Workers < 1:
		return fmt.Errorf("--workers is %d: it must be 1 at least", s.Workers)
	}
	return cmp.Or(o.process.check(), o.checkRate())
}

func (o *recyclerOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	log := o.log()
	settings := ctrl.Options{LeaderElectionID: o.lease(),
		Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()}}
	return o.start(ctx, log, settings, func(manager ctrl.Manager) error {
		if err := o.findImage(ctx, manager.GetAPIReader()); err != nil {
			return err
		}
		log.Info("recycling released volumes", "drivers", o.scrub.Drivers, "version", version)
		return recycler.Add(manager, o.options())
	})
}

// options returns the recycler's options: the flags, and what no flag sets.
func (o *recyclerOptions) options() recycler.Options {
	all := o.scrub
	all.Namespace, all.LocalDriver, all.Metrics = o.namespace, localDriver(), registry.Registry
	return all
}

// findImage sets the image of the scrubbing pods to that of the recycler's own pod, unless one is given.
func (o *recyclerOptions) findImage(ctx context.Context, api client.Reader) error {
	if o.scrub.Image != "" {
		return nil
	}
	own := &corev1.Pod{}
	if err := api.Get(ctx, client.ObjectKey{Namespace: o.namespace, Name: o.pod}, own); err != nil {
		return fmt.Errorf("--pod is %q, and its image is not to be had: %w", o.pod, err)
	}
	o.scrub.Image = own.Spec.Containers[0].Image
	return nil
}

// lease returns the name of the lease by which one recycler of the same drivers leads.
func (o *recyclerOptions) lease() string {
	drivers := slices.Clone(o.scrub.Drivers)
	slices.Sort(drivers)
	return fmt.Sprintf("stowage-recycler-%x",
		sha256.Sum256([]byte(strings.Join(drivers, ","))))[:len("stowage-recycler-")+16]
}
