package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllers "sigs.k8s.io/controller-runtime/pkg/config"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/worker"
)

const system = "stowage-system"

// census knows the PersistentVolumes that can be bound.
type census struct {
	mu     sync.Mutex
	usable map[string]string // by local volume
}

func (c *census) see(object any) {
	if pv, is := object.(*corev1.PersistentVolume); is {
		c.mu.Lock()
		defer c.mu.Unlock()
		volume := pv.Annotations[v1alpha1.LocalVolumeAnnotation]
		if pv.DeletionTimestamp == nil && pv.Spec.ClaimRef == nil {
			c.usable[volume] = pv.Name
		} else if c.usable[volume] == pv.Name {
			delete(c.usable, volume)
		}
	}
}

func (c *census) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.usable)
}

// fleet measures simulated disks.
func fleet(ctx context.Context, p *plane, o options) error {
	p.more = []string{"--disable-admission-plugins=StorageObjectInUseProtection", "--max-requests-inflight=800",
		"--max-mutating-requests-inflight=400"}
	if err := p.begin(ctx); err != nil {
		return err
	}
	if err := p.furnish(ctx, o.nodes); err != nil {
		return err
	}
	seen := &census{usable: map[string]string{}}
	if err := p.count(ctx, seen); err != nil {
		return err
	}
	if err := p.workers(ctx, o); err != nil {
		return err
	}
	audit, err := p.audit()
	if err != nil {
		return err
	}
	begun := time.Now()
	_, err = p.run(ctx, "stowage-manager", "master", "--namespace="+system,
		"--kubeconfig="+filepath.Join(p.folder, "kube.config"),
		"--kube-api-qps=2000", "--kube-api-burst=4000")
	if err != nil {
		return err
	}
	all := o.nodes * o.disks
	if err := p.settled(ctx, audit, seen, all, "all offered", begun, all); err != nil {
		return err
	}
	if audit, err = p.audit(); err != nil {
		return err
	}
	begun = time.Now()
	released, err := p.release(ctx, seen, max(1, all/100))
	if err != nil {
		return err
	}
	if err := p.until(ctx, "the end of what was released", func() error { return seen.isAnew(released) }); err != nil {
		return err
	}
	return p.settled(ctx, audit, seen, all, "1 in 100 again", begun, len(released))
}

// isAnew returns an error unless each of the volumes is offered by another PersistentVolume.
func (c *census) isAnew(released map[string]string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for volume, name := range released {
		if now := c.usable[volume]; now == "" || now == name {
			return fmt.Errorf("%s is offered as %q, after %s", volume, now, name)
		}
	}
	return nil
}

// furnish creates the objects that an installation and the nodes would have created.
func (p *plane) furnish(ctx context.Context, nodes int) error {
	storages, err := definition("nodestorages")
	if err != nil {
		return err
	}
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	objects := []client.Object{
		storages, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}},
		&storagev1.StorageClass{
			ObjectMeta:  metav1.ObjectMeta{Name: "disks", Labels: map[string]string{v1alpha1.LocalVolumeProvisioner: "true"}},
			Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &wait,
		},
	}
	for i := range nodes {
		objects = append(objects,
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeOf(i),
				Labels: map[string]string{corev1.LabelHostname: nodeOf(i)}}})
	}
	for _, one := range objects {
		if err := p.client.Create(ctx, one); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
	}
	return p.until(ctx, "the resource", func() error { return p.client.List(ctx, &v1alpha1.NodeStorageList{}) })
}

func nodeOf(i int) string { return fmt.Sprintf("node-%04d", i) }

// count watches PersistentVolumes.
func (p *plane) count(ctx context.Context, seen *census) error {
	factory := informers.NewSharedInformerFactory(p.kube, 0)
	informer := factory.Core().V1().PersistentVolumes().Informer()
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: seen.see, UpdateFunc: func(_, now any) { seen.see(now) },
	})
	factory.Start(ctx.Done())
	return err
}

// workers starts the worker of each node, each with a watch of its own object.
func (p *plane) workers(ctx context.Context, o options) error {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	unnamed := true
	for i := range o.nodes {
		config := rest.CopyConfig(p.config)
		config.UserAgent = "worker"
		m, err := ctrl.NewManager(config, ctrl.Options{
			Scheme: scheme, Metrics: metrics.Options{BindAddress: "0"},
			Controller: controllers.Controller{SkipNameValidation: &unnamed},
			Cache: cache.Options{
				DefaultNamespaces: map[string]cache.Config{system: {}},
				ByObject: map[client.Object]cache.ByObject{&v1alpha1.NodeStorage{}: {Field: fields.OneTermEqualSelector(
					"metadata.name", nodeOf(i))}},
			},
		})
		if err != nil {
			return err
		}
		one := worker.Options{Node: nodeOf(i), Namespace: system, Disks: newShelf(strconv.Itoa(i), o.disks),
			Log: slog.New(slog.DiscardHandler)}
		if err := worker.Add(m, one); err != nil {
			return err
		}
		go func() {
			if err := m.Start(ctx); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "a worker ended:", err)
			}
		}()
	}
	return nil
}

// release binds and releases count volumes, as Kubernetes and a tenant would.
func (p *plane) release(ctx context.Context, seen *census, count int) (map[string]string, error) {
	released := map[string]string{}
	seen.mu.Lock()
	for volume, name := range seen.usable {
		if len(released) < count {
			released[volume] = name
		}
	}
	seen.mu.Unlock()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for _, name := range released {
		group.Go(func() error {
			pv := &corev1.PersistentVolume{}
			if err := p.client.Get(ctx, client.ObjectKey{Name: name}, pv); err != nil {
				return err
			}
			pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "default",
				Name: name, UID: types.UID(name)}
			if err := p.client.Update(ctx, pv); err != nil {
				return err
			}
			pv.Status.Phase = corev1.VolumeReleased
			return p.client.Status().Update(ctx, pv)
		})
	}
	return released, group.Wait()
}

// settled waits until all volumes are offered, and prints the costs.
func (p *plane) settled(ctx context.Context, audit auditLog, seen *census, all int, what string, begun time.Time,
	volumes int) error {
	last := 0
	for begun := time.Now(); seen.count() < all; {
		if now := seen.count(); now > last {
			last, begun = now, time.Now()
		}
		if time.Since(begun) > time.Minute {
			return fmt.Errorf("%d of %d volumes are offered, and nothing has changed for a minute", last, all)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	took := time.Since(begun)
	memory, processor, err := usage(p.pids["stowage-manager"])
	if err != nil {
		return err
	}
	fmt.Printf("%-16s %7d volumes  %8v  %7.1f/s  master: %d MiB at most, %v of the processor\n",
		what, volumes, took.Round(100*time.Millisecond), float64(volumes)/took.Seconds(), memory>>10, processor)
	return audit.print(volumes)
}

// usage returns the peak memory of a process, in KiB, and its CPU time.
func usage(pid int) (memory int, processor time.Duration, err error) {
	status, first := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	stat, second := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err := errors.Join(first, second); err != nil {
		return 0, 0, err
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(peak, &memory); err != nil {
		return 0, 0, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	const user, tick = 11, 10 * time.Millisecond // proc_pid_stat(5)
	for _, field := range strings.Fields(rest)[user : user+2] {
		ticks, err := strconv.Atoi(field)
		if err != nil {
			return 0, 0, err
		}
		processor += time.Duration(ticks) * tick
	}
	return memory, processor, nil
}
