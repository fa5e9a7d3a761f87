package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/pkg/controllers/orphan"
	"github.com/stowage-csi/stowage/tests/cloud/region"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// dangling attaches one volume to the cluster's node and one to a machine outside the cluster, both without a
// VolumeAttachment. The real csi-attacher detaches the first. The second is only reported.
func (c *busyCloud) dangling(s *workload.Space, b *storage) {
	class := b.deleting(s)
	for _, name := range []string{"ours", "foreign"} {
		s.MakeClaim(workload.Claim(name, class, "1Gi"))
	}
	ours, foreign := s.Bound("ours"), s.Bound("foreign")
	c.attach(s, ours, region.NodeA)
	letGo := c.attach(s, foreign, region.NodeB)
	defer letGo()
	register(s, b.driver, region.NodeA)
	sweep(s, c, b.driver)
	s.Event(workload.Volumes(), ours.Name, "AttachedWithoutVolumeAttachment", "without a VolumeAttachment")
	s.Event(workload.Volumes(), foreign.Name, "AttachedElsewhere", region.NodeB)
	s.Must(wait.PollUntilContextTimeout(s.Context(), 100*time.Millisecond, workload.Patience, true,
		func(context.Context) (bool, error) {
			return len(c.instances(ours)) == 0, nil
		}))
	if on := c.instances(foreign); len(on) != 1 {
		s.T.Errorf("the volume of a machine that is no node is attached to %q", on)
	}
}

// attach attaches a volume to an instance, as a person may do by hand.
func (c *busyCloud) attach(s *workload.Space, volume *corev1.PersistentVolume, instance string) (detach func()) {
	s.T.Helper()
	config := &ebs.Config{}
	c.Configure(&backends.Options{Config: config})
	client, handle := ec2.NewFromConfig(config.AWS), volume.Spec.CSI.VolumeHandle
	_, err := client.AttachVolume(s.Context(), &ec2.AttachVolumeInput{
		VolumeId: &handle, InstanceId: &instance, Device: aws.String("/dev/sd" + string('f'+c.attached.Add(1))),
	})
	s.Must(err)
	return sync.OnceFunc(func() {
		if _, err := client.DetachVolume(context.Background(), &ec2.DetachVolumeInput{VolumeId: &handle}); err != nil {
			s.T.Error(err)
		}
	})
}

// instances returns the instances that the volume is attached to.
func (c *busyCloud) instances(volume *corev1.PersistentVolume) []string {
	for _, v := range c.Server.Volumes() {
		if v.ID == volume.Spec.CSI.VolumeHandle {
			return slices.Collect(maps.Keys(v.Instances))
		}
	}
	return nil
}

// register writes the CSINode entry that the kubelet writes when a node's driver registers, because no EC2 instance
// exists here.
func register(s *workload.Space, driver, id string) {
	s.T.Helper()
	change := func(drivers string) {
		_, err := s.Client.StorageV1().CSINodes().Patch(context.Background(), s.Node, types.StrategicMergePatchType,
			[]byte(`{"spec":{"drivers":[`+drivers+`]}}`), metav1.PatchOptions{})
		s.Must(err)
	}
	change(fmt.Sprintf(`{"name":%q,"nodeID":%q,"topologyKeys":[]}`, driver, id))
	s.T.Cleanup(func() { change(fmt.Sprintf(`{"$patch":"delete","name":%q}`, driver)) })
}

// sweep compares the cloud with the cluster until the test ends.
func sweep(s *workload.Space, c *busyCloud, driver string) {
	s.T.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	s.Must(err)
	log := slog.New(slog.NewTextHandler(s.T.Output(), nil))
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme.Scheme, Logger: logr.FromSlogHandler(log.Handler()), Metrics: metrics.Options{BindAddress: "0"},
	})
	s.Must(err)
	s.Must(orphan.Add(manager, orphan.Options{
		Driver: listing{c, driver}, Log: log, Period: 2 * time.Second, Grace: time.Hour, Repair: true,
	}))
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- manager.Start(ctx) }()
	s.T.Cleanup(func() {
		stop()
		s.Must(<-done)
	})
}

// listing lists the cloud's own volumes, so that only the controller is under test.
type listing struct {
	cloud  *busyCloud
	driver string
}

func (l listing) Driver() string   { return l.driver }
func (l listing) CanList() bool    { return true }
func (l listing) ListsNodes() bool { return true }

func (l listing) List(context.Context) (list []csiclient.Listed, err error) {
	for _, v := range l.cloud.Server.Volumes() {
		list = append(list, csiclient.Listed{Handle: v.ID, Nodes: slices.Collect(maps.Keys(v.Instances))})
	}
	return list, nil
}
