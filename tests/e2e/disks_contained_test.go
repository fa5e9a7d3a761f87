package e2e

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/tests/e2e/deployed"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

const (
	workerAccount = "stowage-disks-worker"
	otherNode     = "another-node"
)

// thief is an attacker who has a worker's token.
type thief struct {
	found
	t   *testing.T
	api dynamic.Interface
}

// contained uses the token of the node's worker for the attempts that a compromised worker could make. All are refused;
// the token can write only the status of its own node's object.
func (f found) contained(t *testing.T) {
	f.T = t
	f.another()
	pods, err := f.Client.CoreV1().Pods(deployed.Namespace).List(t.Context(),
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=worker"})
	f.Must(err)
	// The worker's own token, from its file.
	token, err := f.Kubectl(t.Context(), "exec", "--namespace="+deployed.Namespace, pods.Items[0].Name, "--",
		"cat", "/var/run/secrets/kubernetes.io/serviceaccount/token")
	f.Must(err)
	own := thief{f, t, f.with(token)}
	for _, name := range slices.Sorted(maps.Keys(own.attempts())) {
		own.refused(name, own.attempts()[name])
	}
	unbound := thief{f, t, f.with(f.token())}
	unbound.refused("the status of a node, by a token of no pod", func() error { return unbound.writeStatus(f.Node, nil) })
	own.allowed()
}

func (h thief) refused(name string, attempt func() error) {
	h.t.Helper()
	err := attempt()
	if !apierrors.IsForbidden(err) && (!apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'stowage-")) {
		h.t.Errorf("%s: want it refused, got: %v", name, err)
		return
	}
	h.t.Logf("%s: %v", name, err)
}

// attempts returns the thief's requests.
func (h thief) attempts() map[string]func() error {
	ctx, none := h.t.Context(), metav1.DeleteOptions{}
	storages := func(name string) func(patch string, sub ...string) func() error {
		return func(patch string, sub ...string) func() error {
			return func() error {
				_, err := h.storages().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, sub...)
				return err
			}
		}
	}
	own, other := storages(h.Node), storages(otherNode)
	return map[string]func() error{
		"the status of another node":                func() error { return h.writeStatus(otherNode, nil) },
		"a patch of another node's status":          other(`{"status":{"found":1}}`, "status"),
		"an offer in its own spec":                  func() error { return h.write(h.Node, nil) },
		"a patch of its own spec":                   own(`{"spec":{"offers":null}}`),
		"another node's spec":                       func() error { return h.write(otherNode, nil) },
		"the pools of its own node":                 func() error { return h.writeStatus(h.Node, h.addPool) },
		"an annotation that gives up its volumes":   own(`{"metadata":{"annotations":{"stowage.dev/forget":"true"}}}`),
		"an annotation that has another node wiped": other(`{"metadata":{"annotations":{"stowage.dev/reclaim":"disk-1"}}}`),
		"the finalizer of its own object":           own(`{"metadata":{"finalizers":null}}`),
		"removing its own object":                   func() error { return h.storages().Delete(ctx, h.Node, none) },
		"removing all objects": func() error {
			return h.storages().DeleteCollection(ctx, none, metav1.ListOptions{})
		},
		"an object of a node that is not there": h.create("nodestorages", "NodeStorage", "stowage.dev/v1alpha1",
			deployed.Namespace, "nowhere"),
		"a PersistentVolume of its own": h.create("persistentvolumes", "PersistentVolume", "v1", "", "stolen"),
		"binding a PersistentVolume": h.patch("persistentvolumes", "v1", "", "any",
			`{"spec":{"claimRef":{"name":"x","namespace":"y"}}}`),
		"removing PersistentVolumes": h.delete("persistentvolumes", "v1", ""),
		"reading PersistentVolumes":  h.list("persistentvolumes", "v1", ""),
		"a claim": h.create("persistentvolumeclaims", "PersistentVolumeClaim", "v1",
			h.Namespace, "stolen"),
		"a class": h.create("storageclasses", "StorageClass", "storage.k8s.io/v1", "",
			"stolen"),
		"a pod":        h.create("pods", "Pod", "v1", deployed.Namespace, "stolen"),
		"secrets":      h.list("secrets", "v1", deployed.Namespace),
		"its own node": h.patch("nodes", "v1", "", h.Node, `{"spec":{"unschedulable":true}}`),
		"the masters' lease": h.patch("leases", "coordination.k8s.io/v1", deployed.Namespace,
			"stowage-disks-master", `{"spec":{"holderIdentity":"x"}}`),
		"an event":                       h.create("events", "Event", "v1", deployed.Namespace, "stolen"),
		"the configuration of all nodes": h.list("configmaps", "v1", deployed.Namespace),
		"the policy that contains it": h.delete("validatingadmissionpolicybindings",
			"admissionregistration.k8s.io/v1", ""),
		"a role": h.create("rolebindings", "RoleBinding", "rbac.authorization.k8s.io/v1",
			deployed.Namespace, "stolen"),
		"the masters' token": h.create("serviceaccounts", "TokenRequest", "authentication.k8s.io/v1",
			deployed.Namespace, "stowage-disks-master", "token"),
		"another token of its own account": h.create("serviceaccounts", "TokenRequest", "authentication.k8s.io/v1",
			deployed.Namespace, workerAccount, "token"),
		"NodeStorages of another namespace": h.list("nodestorages", "stowage.dev/v1alpha1", h.Namespace),
		"NodeStorages of the whole cluster": h.list("nodestorages", "stowage.dev/v1alpha1", ""),
	}
}

// addPool adds a pool to a NodeStorage, which only the worker of local volumes may.
func (h thief) addPool(s *unstructured.Unstructured) {
	pool := map[string]any{"name": "stolen", "type": "image", "available": "1Gi"}
	h.Must(unstructured.SetNestedSlice(s.Object, []any{pool}, "status", "pools"))
}

// allowed writes the status of its own node's object along with changes to every other part, which have no effect.
func (h thief) allowed() {
	h.t.Helper()
	before := h.storage("is there", func(*v1alpha1.NodeStorage) bool { return true })
	err := h.writeStatus(h.Node, func(s *unstructured.Unstructured) {
		s.SetAnnotations(map[string]string{v1alpha1.ForgetAnnotation: "true"})
		s.SetFinalizers(nil)
		s.SetLabels(map[string]string{"stolen": "true"})
		h.Must(unstructured.SetNestedField(s.Object, map[string]any{}, "spec"))
		h.Must(unstructured.SetNestedField(s.Object, int64(0), "status", "deleting"))
	})
	if err != nil {
		h.t.Errorf("the status of its own node: %v", err)
	}
	after := h.storage("is there", func(*v1alpha1.NodeStorage) bool { return true })
	if after.Annotations[v1alpha1.ForgetAnnotation] != "" || after.Labels["stolen"] != "" ||
		!slices.Equal(after.Finalizers, before.Finalizers) ||
		len(after.Spec.Offers) == 0 {
		h.t.Errorf("a write of the status has changed more: %+v", after)
	}
}

// writeStatus writes a status with an update, as the worker does.
func (h thief) writeStatus(node string, change func(*unstructured.Unstructured)) error {
	return h.write(node, change, "status")
}

// write updates an object as the thief. The administrator reads it, so that only the write can be refused.
func (h thief) write(node string, change func(*unstructured.Unstructured), sub ...string) error {
	object, err := h.Dynamic.Resource(nodeStorages().Resource).Namespace(deployed.Namespace).Get(h.t.Context(), node,
		metav1.GetOptions{})
	h.Must(err)
	if change != nil {
		change(object)
	}
	_, err = h.storages().Update(h.t.Context(), object, metav1.UpdateOptions{}, sub...)
	if apierrors.IsConflict(err) { // The worker wrote in between.
		return h.write(node, change, sub...)
	}
	return err
}

func (h thief) storages() dynamic.ResourceInterface {
	return h.api.Resource(nodeStorages().Resource).Namespace(deployed.Namespace)
}

func (h thief) of(resource, version, namespace string) dynamic.ResourceInterface {
	gv, err := schema.ParseGroupVersion(version)
	h.Must(err)
	if resource == "serviceaccounts" { // The token subresource is in another API group than its ServiceAccount.
		gv = schema.GroupVersion{Version: "v1"}
	}
	return h.api.Resource(gv.WithResource(resource)).Namespace(namespace)
}

func (h thief) create(resource, kind, version, namespace, name string, sub ...string) func() error {
	return func() error {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind,
			"metadata": map[string]any{"name": name}}}
		_, err := h.of(resource, version, namespace).Create(h.t.Context(), object, metav1.CreateOptions{}, sub...)
		return err
	}
}

func (h thief) patch(resource, version, namespace, name, patch string) func() error {
	return func() error {
		_, err := h.of(resource, version, namespace).Patch(h.t.Context(), name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{})
		return err
	}
}

func (h thief) delete(resource, version, namespace string) func() error {
	return func() error {
		return h.of(resource, version, namespace).DeleteCollection(h.t.Context(), metav1.DeleteOptions{},
			metav1.ListOptions{})
	}
}

func (h thief) list(resource, version, namespace string) func() error {
	return func() error {
		_, err := h.of(resource, version, namespace).List(h.t.Context(), metav1.ListOptions{})
		return err
	}
}

// another creates the NodeStorage of a node that does not exist; the master assumes that the node may return.
func (f found) another() {
	f.T.Helper()
	text, err := json.Marshal(&v1alpha1.NodeStorage{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "NodeStorage"},
		ObjectMeta: metav1.ObjectMeta{Name: otherNode},
	})
	f.Must(err)
	object := &unstructured.Unstructured{}
	f.Must(object.UnmarshalJSON(text))
	_, err = f.Dynamic.Resource(nodeStorages().Resource).Namespace(deployed.Namespace).Create(f.Context(), object,
		metav1.CreateOptions{})
	f.Must(err)
	workload.Until(&workload.Space{Cluster: f.Cluster, T: f.T, Namespace: deployed.Namespace}, nodeStorages(), otherNode,
		"is held by the master",
		func(s *v1alpha1.NodeStorage) bool { return len(s.Finalizers) > 0 })
}

// token requests a token of the workers' account that is bound to no pod.
func (f found) token() string {
	f.T.Helper()
	request := &authenticationv1.TokenRequest{}
	made, err := f.Client.CoreV1().ServiceAccounts(deployed.Namespace).CreateToken(f.Context(), workerAccount, request,
		metav1.CreateOptions{})
	f.Must(err)
	return made.Status.Token
}

// with returns a client that has only a token.
func (f found) with(token string) dynamic.Interface {
	f.T.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", f.Kubeconfig())
	f.Must(err)
	config = rest.AnonymousClientConfig(config)
	config.BearerToken, config.QPS, config.Burst = token, 100, 200
	api, err := dynamic.NewForConfig(config)
	f.Must(err)
	return api
}
