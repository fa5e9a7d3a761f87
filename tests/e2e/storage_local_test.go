package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/tests/e2e/deployed"
	"github.com/stowage-csi/stowage/tests/e2e/nodeview"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// startLocal returns the driver that the cluster has from the start.
func startLocal(*testing.T) *storage {
	return &storage{
		parameters: func(*workload.Space) map[string]string { return map[string]string{"pool": "image"} },
		grain:      4096, runs: true, refused: localRefuses(),
		there: func(s *workload.Space, volume *corev1.PersistentVolume) (bool, error) {
			view, err := s.Look(s.Context())
			return len(view.Of(volume.Spec.CSI.VolumeHandle)) > 0, err
		},
		slow: stopLocal, keep: keepLocal,
	}
}

func localRefuses() map[string]refusal {
	return map[string]refusal{
		"unknown parameter": {
			parameters: map[string]string{"poool": "image"},
			says:       []string{`parameter "poool" is not known: did you mean "pool"?`},
		},
		"wrong case": {
			parameters: map[string]string{"ondelete": "retain"},
			says:       []string{`parameter "ondelete" is not known: did you mean "onDelete"`},
		},
		"unknown value": {
			parameters: map[string]string{"allocation": "thick"}, says: []string{"allocation", "thick", "sparse", "full"},
		},
		"impossible filesystem": {
			parameters: map[string]string{"pool": "image", fsType: "ntfs"}, says: []string{"ntfs", "ext4", "xfs"},
		},
		"filesystem on a directory": {
			parameters: map[string]string{"pool": "directory", fsType: "ext4"}, says: []string{`"ext4"`, "is a directory"},
		},
		"unknown pool": {
			parameters: map[string]string{"pool": "fast"},
			says:       []string{`there is no pool "fast" on this node: use image or directory`},
		},
		"impossible combination": {
			parameters: map[string]string{"pool": "directory", "allocation": "full"}, says: []string{"allocation", "image"},
		},
		"directory as a device": {
			parameters: map[string]string{"pool": "directory"}, change: workload.Block,
			says: []string{`access type "block" is not supported: use mount`},
		},
		"selector": {
			change: func(spec *corev1.PersistentVolumeClaimSpec) {
				spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"region": "north"}}
			},
			says: []string{"claim Selector is not supported"},
		},
		"ReadWriteMany": {
			parameters: map[string]string{"pool": "image"}, change: workload.Mode(corev1.ReadWriteMany),
			says: []string{"MULTI_NODE_MULTI_WRITER is not supported: use SINGLE_NODE_WRITER"},
		},
	}
}

// fsType is the class parameter that csi-provisioner passes on as the filesystem type.
const fsType = "csi.storage.k8s.io/fstype"

// stopLocal stops the driver's process until it is released.
func stopLocal(s *workload.Space) (release func()) {
	s.T.Helper()
	pod, err := s.Client.CoreV1().Pods(deployed.Namespace).Get(s.Context(), deployed.Pod, metav1.GetOptions{})
	s.Must(err)
	id := strings.TrimPrefix(container(pod, deployed.Container).ContainerID, "containerd://")
	signal := func(name string) error {
		_, err := s.OnNode(context.Background(), nodeview.ContainerSignal(s.Cluster.Cluster, id, name)...)
		return err
	}
	s.Must(signal("SIGSTOP"))
	return sync.OnceFunc(func() {
		if err := signal("SIGCONT"); err != nil {
			s.T.Error(err)
		}
	})
}

// keepLocal makes the volume's directory immutable.
func keepLocal(s *workload.Space, volume *corev1.PersistentVolume) (says []string, letGo func()) {
	s.T.Helper()
	view, err := s.Look(s.Context())
	s.Must(err)
	for _, entry := range view.Entries {
		if strings.HasSuffix(entry, "/volumes/"+volume.Spec.CSI.VolumeHandle) {
			return []string{volume.Spec.CSI.VolumeHandle, "operation not permitted"},
				immutable(s, filepath.Join(*data, "nodes", s.Node, entry))
		}
	}
	s.T.Fatalf("the node has no directory of %s in %v", volume.Spec.CSI.VolumeHandle, view.Entries)
	return nil, nil
}

// immutable makes directories immutable, including the list of their entries.
func immutable(s *workload.Space, dirs ...string) (letGo func()) {
	s.T.Helper()
	change := func(how string) error {
		return exec.CommandContext(context.Background(), "chattr", append([]string{how}, dirs...)...).Run()
	}
	s.Must(change("+i"))
	letGo = sync.OnceFunc(func() {
		if err := change("-i"); err != nil {
			s.T.Errorf("chattr -i %q: %v", dirs, err)
		}
	})
	return letGo
}
