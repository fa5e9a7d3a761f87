package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

const (
	driver    = "memory.csi.stowage.dev"
	namespace = "pools"
	class     = "pools"
	plain     = "plain" // the same class without a set
	nodeName  = "node"
	setLabel  = "pools-set"
)

func (p *plane) connect() (err error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, storagev1.AddToScheme, v1alpha1.AddToScheme, apiextensions.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	if p.kube, err = kubernetes.NewForConfig(p.config); err != nil {
		return err
	}
	p.client, err = client.New(p.config, client.Options{Scheme: scheme})
	return err
}

// prepare creates the objects that a driver's installation and its node would have created.
func (p *plane) prepare(ctx context.Context) error {
	definition, err := definition("persistentvolumesets")
	if err != nil {
		return err
	}
	zone := driver + "/zone"
	objects := []client.Object{
		definition,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "stowage-system"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: map[string]string{zone: "memory"}}},
		&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: nodeName}, Spec: storagev1.CSINodeSpec{
			Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: nodeName, TopologyKeys: []string{zone}}},
		}},
	}
	for _, name := range []string{class, plain} {
		objects = append(objects, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: driver})
	}
	for _, one := range objects {
		if err := p.client.Create(ctx, one); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
	}
	return p.until(ctx, "the resource", func() error { return p.client.List(ctx, &v1alpha1.PersistentVolumeSetList{}) })
}

// definition returns the definition of one of the project's own resources.
func definition(resource string) (*apiextensions.CustomResourceDefinition, error) {
	text, err := os.ReadFile("deploy/kubernetes/crds/stowage.dev_" + resource + ".yaml")
	if err != nil {
		return nil, err
	}
	definition := &apiextensions.CustomResourceDefinition{}
	return definition, yaml.Unmarshal(text, definition)
}

// manager starts a manager.
func (p *plane) manager(ctx context.Context, qps int) (stop func(), err error) {
	return p.run(ctx, "stowage-manager", "--csi-address="+p.socket, "--namespace=stowage-system",
		"--kubeconfig="+filepath.Join(p.folder, "kube.config"), "--v=2", fmt.Sprintf("--bind-api-qps=%d", qps))
}

// newSet returns a set of count volumes, bound or not.
func newSet(name string, count int) *v1alpha1.PersistentVolumeSet {
	labels := map[string]v1alpha1.LabelValue{setLabel: v1alpha1.LabelValue(name)}
	return &v1alpha1.PersistentVolumeSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.PersistentVolumeSetSpec{
			MinimumReplicas: int32(count), MaximumReplicas: int32(count), Selector: labels, // It is small.
			Template: v1alpha1.PersistentVolumeTemplate{
				Metadata: v1alpha1.TemplateMetadata{Labels: labels},
				Spec: v1alpha1.PersistentVolumeTemplateSpec{
					StorageClassName: class, Capacity: resource.MustParse("16Mi"),
					PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
				},
			},
		},
	}
}

func newClaim(name, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")},
			},
		},
	}
}
