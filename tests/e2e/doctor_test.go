package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/pkg/doctor"
	"github.com/stowage-csi/stowage/tests/e2e/deployed"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// situation is a fault that an operator asks about.
type situation struct {
	kind, name string
	makes      func(s *workload.Space)
	cause      string // part of a finding
}

// TestDoctor creates the faults that operators meet, and expects the doctor to name each cause.
func TestDoctor(t *testing.T) {
	c := cluster(t)
	s := c.NewSpace(t)
	program := filepath.Join(t.TempDir(), "kubectl-stowage")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/kubectl-stowage")
	build.Dir = tree
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	all := situations()
	for _, one := range all {
		one.makes(s)
	}
	for _, one := range all {
		t.Run(one.name, func(t *testing.T) {
			s.Must(workload.Eventually(t.Context(), "the cause", func() error {
				found, err := diagnose(t.Context(), program, "--kubeconfig="+c.Kubeconfig(), "--namespace="+s.Namespace, one.kind,
					one.name)
				if err != nil {
					return err
				}
				for _, f := range found {
					if strings.Contains(f.Says, one.cause) {
						t.Logf("%s: %s %s", f.Object, f.Says, f.Proof)
						return nil
					}
				}
				return fmt.Errorf("got %+v, want %q", found, one.cause)
			}))
		})
	}
	found, err := diagnose(t.Context(), program, "--kubeconfig="+c.Kubeconfig())
	s.Must(err)
	t.Logf("the whole cluster has %d findings", len(found))
}

// diagnose runs the doctor.
func diagnose(ctx context.Context, program string, args ...string) (found []doctor.Finding, err error) {
	out, err := exec.CommandContext(ctx, program, append([]string{"doctor", "--output=json"}, args...)...).Output()
	if err != nil {
		return nil, err
	}
	return found, json.Unmarshal(out, &found)
}

// situations are independent of each other. Those of drivers that do not run use their own names.
func situations() []situation {
	pending := func(name, class string) func(s *workload.Space) {
		return func(s *workload.Space) { s.MakeClaim(workload.Claim(name, class, "16Mi")) }
	}
	return []situation{
		{"claim", "no-class", pending("no-class", "there-is-no-such-class"), "does not exist"},
		{"claim", "no-class-name", pending("no-class-name", ""), "names no StorageClass"},
		{"claim", "no-driver", func(s *workload.Space) {
			pending("no-driver", s.MakeClass(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "absent"},
				Provisioner: "absent.example.com"}))(s)
		}, "which is not installed"},
		{"claim", "no-pool", func(s *workload.Space) {
			pending("no-pool", s.Class("no-pool", map[string]string{"pool": "none"}, corev1.PersistentVolumeReclaimDelete))(s)
		}, "could not create the volume"},
		{"claim", "no-pod", func(s *workload.Space) {
			first := storagev1.VolumeBindingWaitForFirstConsumer
			pending("no-pod", s.MakeClass(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "later"},
				Provisioner: deployed.Driver, VolumeBindingMode: &first}))(s)
		}, "waits for the first pod"},
		{"pod", "no-claim", func(s *workload.Space) { s.MakePod(workload.Pod("no-claim", "true", workload.At("nowhere"))) },
			"there is no such claim"},
		{"claim", "lost", func(s *workload.Space) {
			name := byHand(s, "lost", deployed.Driver)
			s.Must(s.Client.CoreV1().PersistentVolumes().Delete(s.Context(), name, metav1.DeleteOptions{}))
			s.ChangeVolume(name, `{"metadata":{"finalizers":null}}`)
		}, "is gone"},
		{"claim", "taken", func(s *workload.Space) {
			name := byHand(s, "owner", deployed.Driver)
			s.MakeClaim(workload.Claim("taken", "", "16Mi", workload.Named(name)))
		}, "which belongs to claim"},
		{"pod", "no-node", func(s *workload.Space) {
			byHand(s, "no-node", deployed.Driver, func(v *corev1.PersistentVolumeSpec) {
				v.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{
						MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/hostname",
							Operator: corev1.NodeSelectorOpIn, Values: []string{"node-that-is-gone"}}},
					}},
				}}
			})
			s.MakePod(workload.Pod("no-node", "true", workload.At("no-node")))
		}, "no node of the cluster has the labels"},
		{"pod", "no-volume", func(s *workload.Space) {
			byHand(s, "no-volume", deployed.Driver)
			s.MakePod(workload.Pod("no-volume", "true", workload.At("no-volume")))
		}, "could not mount a volume"},
		{"pod", "no-attacher", ofDriver("no-attacher", true), "no csi-attacher has looked"},
		{"pod", "no-plugin", ofDriver("no-plugin", false), "is not registered on node"},
		{"claim", "in-use", func(s *workload.Space) {
			pending("in-use", s.Class("in-use", map[string]string{"pool": "image"}, corev1.PersistentVolumeReclaimDelete))(s)
			s.Start(workload.Pod("user", "sleep 1000", workload.At("in-use")))
			s.Must(s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Delete(s.Context(), "in-use", metav1.DeleteOptions{}))
		}, "stays as long as it is used by pod"},
		{"claim", "too-large", func(s *workload.Space) {
			pending("too-large", s.Class("too-large", map[string]string{"pool": "image"},
				corev1.PersistentVolumeReclaimDelete))(s)
			s.Bound("too-large")
			s.ChangeClaim("too-large", `{"spec":{"resources":{"requests":{"storage":"900Ti"}}}}`)
		}, "asks for 900Ti"},
	}
}

// ofDriver creates a pod with a volume of a driver that has a CSIDriver and does not run.
func ofDriver(name string, attaches bool) func(s *workload.Space) {
	return func(s *workload.Space) {
		driver := name + "." + s.Namespace
		_, err := s.Client.StorageV1().CSIDrivers().Create(s.Context(), &storagev1.CSIDriver{
			ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{AttachRequired: &attaches},
		}, metav1.CreateOptions{})
		s.Must(err)
		s.T.Cleanup(func() {
			_ = s.Client.StorageV1().CSIDrivers().Delete(context.Background(), driver, metav1.DeleteOptions{})
		})
		byHand(s, name, driver)
		s.MakePod(workload.Pod(name, "true", workload.At(name), func(spec *corev1.PodSpec) { spec.NodeName = s.Node }))
		s.T.Cleanup(func() { endAttachment(s, name, driver) })
	}
}

// endAttachment deletes a pod and the VolumeAttachment that it waits for. Otherwise the VolumeAttachment stays for at
// least two minutes, because the attach/detach controller first waits in vain for the attachment to succeed.
func endAttachment(s *workload.Space, pod, driver string) {
	ctx, now := context.Background(), int64(0)
	_ = s.Client.CoreV1().Pods(s.Namespace).Delete(ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: &now})
	attachments := s.Client.StorageV1().VolumeAttachments()
	if err := workload.Eventually(ctx, "the end of the attachment", func() error {
		all, err := attachments.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, a := range all.Items {
			if a.Spec.Attacher == driver {
				if err := attachments.Delete(ctx, a.Name, metav1.DeleteOptions{}); err != nil {
					return err
				}
				return errors.New("it was there a moment ago")
			}
		}
		return nil
	}); err != nil {
		s.T.Error(err)
	}
}

// byHand creates a claim that is bound to a PersistentVolume that has no volume in the storage, and returns the
// PersistentVolume's name.
func byHand(s *workload.Space, claim, driver string, changes ...func(*corev1.PersistentVolumeSpec)) string {
	s.T.Helper()
	volumes, name := s.Client.CoreV1().PersistentVolumes(), s.Namespace+"-"+claim
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")},
		ClaimRef:                      &corev1.ObjectReference{Namespace: s.Namespace, Name: claim},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver,
			VolumeHandle: name}},
	}}
	for _, change := range changes {
		change(&v.Spec)
	}
	_, err := volumes.Create(s.Context(), v, metav1.CreateOptions{})
	s.Must(err)
	s.T.Cleanup(func() { _ = volumes.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	s.MakeClaim(workload.Claim(claim, "", "16Mi", workload.Named(name)))
	workload.Until(s, workload.Claims(), claim, "is bound",
		func(c *corev1.PersistentVolumeClaim) bool { return c.Status.Phase == corev1.ClaimBound })
	return name
}
