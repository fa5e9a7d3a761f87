package e2e

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/tests/e2e/deployed"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// TestTerminated makes the kubelet end the driver while some clients are silent and others create volumes. The driver
// ends by itself before it is killed, and each acknowledged volume exists.
func TestTerminated(t *testing.T) {
	s := cluster(t).NewSpace(t)
	root, err := s.NodeFiles(s.Node)
	s.Must(err)
	socket := filepath.Join(root, "var/lib/kubelet/plugins", deployed.Driver, "csi.sock")
	for _, said := range []string{"", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"} {
		client, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
		s.Must(err)
		t.Cleanup(func() { _ = client.Close() })
		_, err = client.Write([]byte(said))
		s.Must(err)
	}
	busy := newMakers(s, socket)
	busy.work(4)
	begun := time.Now()
	ended := terminate(s)
	t.Logf("after %v the driver ended with %d, and %d volumes had been acknowledged",
		ended.FinishedAt.Sub(begun).Round(time.Second), ended.ExitCode, len(busy.wait()))
	if ended.ExitCode != 0 {
		t.Errorf("the driver did not end by itself: %+v", ended)
	}
	busy.settle()
}

// terminate deletes the driver's pod with its own grace period, waits until another pod is ready, and returns how the
// driver's process ended.
func terminate(s *workload.Space) *corev1.ContainerStateTerminated {
	s.T.Helper()
	pods := s.Client.CoreV1().Pods(deployed.Namespace)
	old, err := pods.Get(s.Context(), deployed.Pod, metav1.GetOptions{})
	s.Must(err)
	s.Must(pods.Delete(s.Context(), deployed.Pod, metav1.DeleteOptions{}))
	ended, err := workload.Await(s.Context(), s.Cluster, workload.Pods(), deployed.Namespace, deployed.Pod,
		func(p *corev1.Pod) bool {
			return p.UID == old.UID && container(p, deployed.Container).State.Terminated != nil
		})
	s.Must(err)
	_, err = workload.Await(s.Context(), s.Cluster, workload.Pods(), deployed.Namespace, deployed.Pod,
		func(p *corev1.Pod) bool { return p.UID != old.UID && workload.Ready(p) })
	s.Must(err)
	return container(ended, deployed.Container).State.Terminated
}

// makers are clients of the driver's socket that create volumes until the socket is gone.
type makers struct {
	s      *workload.Space
	driver csi.ControllerClient

	group    sync.WaitGroup
	mu       sync.Mutex
	asked    []string
	answered map[string]string // handles by name
	enough   chan struct{}     // closed once some are answered
}

func newMakers(s *workload.Space, socket string) *makers {
	s.T.Helper()
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	s.Must(err)
	s.T.Cleanup(func() { _ = connection.Close() })
	return &makers{s: s, driver: csi.NewControllerClient(connection), answered: map[string]string{},
		enough: make(chan struct{})}
}

// work starts clients, and returns once they are at work.
func (m *makers) work(clients int) {
	for client := range clients {
		m.group.Go(func() {
			for n := 0; ; n++ {
				if m.make(fmt.Sprintf("%s-%d-%d", m.s.Namespace, client, n)) != nil {
					return
				}
			}
		})
	}
	<-m.enough
}

func (m *makers) make(name string) error {
	m.mu.Lock()
	m.asked = append(m.asked, name)
	m.mu.Unlock()
	made, err := m.create(m.s.Context(), name)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.answered[name] = made; len(m.answered) == 10 {
		close(m.enough)
	}
	return nil
}

func (m *makers) create(ctx context.Context, name string) (handle string, err error) {
	made, err := m.driver.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: name,
		CapacityRange: &csi.CapacityRange{RequiredBytes: 16 << 20}, Parameters: map[string]string{"pool": "image"},
		VolumeCapabilities: []*csi.VolumeCapability{{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}}}})
	return made.GetVolume().GetVolumeId(), err
}

// wait waits until no client is at work, and returns the acknowledged handles by name.
func (m *makers) wait() map[string]string {
	m.group.Wait()
	return m.answered
}

// settle checks that the driver has the volumes that it acknowledged, and deletes all.
func (m *makers) settle() {
	m.s.T.Helper()
	ctx := m.s.Context()
	there := m.list(ctx)
	for name, handle := range m.wait() {
		if !there[handle] {
			m.s.T.Errorf("the volume %s of %s was acknowledged, and is not there", handle, name)
		}
	}
	for _, name := range m.asked {
		handle, err := m.create(ctx, name)
		m.s.Must(err)
		if before, ok := m.answered[name]; ok && before != handle {
			m.s.T.Errorf("%s was %s, and is %s", name, before, handle)
		}
		_, err = m.driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: handle})
		m.s.Must(err)
	}
}

// list returns the handles of all volumes.
func (m *makers) list(ctx context.Context) map[string]bool {
	m.s.T.Helper()
	there := map[string]bool{}
	for token, isFirst := "", true; isFirst || token != ""; isFirst = false {
		page, err := m.driver.ListVolumes(ctx, &csi.ListVolumesRequest{StartingToken: token}, grpc.WaitForReady(true))
		m.s.Must(err)
		for _, entry := range page.GetEntries() {
			there[entry.GetVolume().GetVolumeId()] = true
		}
		token = page.GetNextToken()
	}
	return there
}
