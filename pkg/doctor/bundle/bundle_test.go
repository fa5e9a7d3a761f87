package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/doctor"
	"github.com/stowage-csi/stowage/tests/secrets"
)

// unpack returns the files of an archive.
func unpack(t *testing.T, archive io.Reader) map[string]string {
	t.Helper()
	packed, err := gzip.NewReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for reader := tar.NewReader(packed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "stowage-bundle/")] = string(content)
	}
}

const canary = secrets.Canary

// free is a map with a secret under each name that people use, and with one inside a longer value.
func free() map[string]string {
	m := map[string]string{"server": "nfs.example.org", "options": "noatime,password=" + canary}
	for _, name := range secrets.Keys() {
		m[name] = canary
	}
	return m
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "shop", Name: name, Labels: map[string]string{"token": canary},
		Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": canary, "vault.example.org/template": canary,
			"stowage.dev/password": canary,
		},
	}
}

// container has secrets in every field that its author can set.
func container(name string, args ...string) corev1.Container {
	run := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"mysql", "-p" + canary}}}
	return corev1.Container{
		Name: name, Args: args, Command: []string{"mysqld", canary}, Env: []corev1.EnvVar{{Name: "PLAIN", Value: canary}},
		LivenessProbe: &corev1.Probe{ProbeHandler: run}, ReadinessProbe: &corev1.Probe{ProbeHandler: run},
		StartupProbe: &corev1.Probe{ProbeHandler: run},
		Lifecycle:    &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: run.Exec}},
	}
}

func pod(name string, c corev1.Container) *corev1.Pod {
	ended := &corev1.ContainerStateTerminated{ExitCode: 1, Message: canary}
	return &corev1.Pod{
		ObjectMeta: meta(name),
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{c}, InitContainers: []corev1.Container{container("init", canary)},
			EphemeralContainers: []corev1.EphemeralContainer{{
				EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Args: []string{canary}},
			}},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
				}},
				{Name: "inline", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "nfs.csi.stowage.dev",
					VolumeAttributes: free()}}},
				{Name: "git", VolumeSource: corev1.VolumeSource{GitRepo: &corev1.GitRepoVolumeSource{Repository: "https://me:" +
					canary + "@example.org"}}},
			},
		},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: c.Name, RestartCount: 1, LastTerminationState: corev1.ContainerState{Terminated: ended},
			State: corev1.ContainerState{Terminated: ended},
		}}},
	}
}

// cluster has a secret in every place where people keep one.
func cluster() []client.Object {
	volume := &corev1.PersistentVolume{ObjectMeta: meta("pv")}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "nfs.csi.stowage.dev", VolumeHandle: "the-handle",
		VolumeAttributes: free()}
	volume.Spec.MountOptions = []string{"noatime", "password=" + canary}
	flex := &corev1.PersistentVolume{ObjectMeta: meta("flex")}
	flex.Spec.FlexVolume = &corev1.FlexPersistentVolumeSource{Driver: "old", Options: free()}
	volume.Namespace, flex.Namespace = "", ""
	event := func(name, kind, reason string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: meta(name), Reason: reason, InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "shop",
				Name: "web"},
			Message: "mount failed: -o vers=4,password=" + canary + " Authorization: Bearer " + canary,
		}
	}
	class := &storagev1.StorageClass{ObjectMeta: meta("class"), Provisioner: "nfs.csi.stowage.dev", Parameters: free(),
		MountOptions: []string{"secret=" + canary}}
	attachment := &storagev1.VolumeAttachment{ObjectMeta: meta("attachment")}
	attachment.Status.AttachmentMetadata = free()
	class.Namespace, attachment.Namespace = "", ""
	return []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s"},
			Data: map[string][]byte{"plain": []byte(canary)}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "m"},
			Data: map[string]string{"plain": canary}},
		volume, flex, class, attachment, &corev1.PersistentVolumeClaim{ObjectMeta: meta("data")},
		pod("web", container("main", canary)), pod("driver",
			container("stowage", "volume-worker", "--backend=nfs", "--password="+canary,
				"--otlp-endpoint=https://user:"+canary+"@collector")),
		event("one", "Pod", "FailedMount"), event("two", "PersistentVolumeClaim", "ProvisioningFailed"),
		event("three", "Pod", "Unhealthy"),
	}
}

// own returns an object of each of Stowage's own kinds, with a secret in every place where people keep one.
func own() []client.Object {
	password := "password=" + canary
	set := &v1alpha1.PersistentVolumeSet{ObjectMeta: meta("set")}
	set.Namespace = ""
	set.Spec.Selector = map[string]v1alpha1.LabelValue{"token": canary, "pool": "fast"}
	set.Spec.Template = v1alpha1.PersistentVolumeTemplate{
		Metadata: v1alpha1.TemplateMetadata{Labels: map[string]v1alpha1.LabelValue{"token": canary},
			Annotations: map[string]string{"vault.example.org/template": canary}},
		Spec: v1alpha1.PersistentVolumeTemplateSpec{StorageClassName: "class", MountOptions: []string{password}},
	}
	set.Status.Selector = "pool=fast,token=" + canary
	set.Status.Slots = []v1alpha1.VolumeSlot{{Name: "slot", Segments: map[string]string{"token": canary}}}
	set.Status.Orders = []v1alpha1.VolumeOrder{{Name: "order", Template: set.Spec.Template, Class: v1alpha1.SlotClass{
		Parameters: free(), MutableParameters: free(), MountOptions: []string{password},
	}}}
	set.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Message: password}}
	volume := &v1alpha1.LocalVolume{ObjectMeta: meta("local-volume")}
	volume.Spec.Parameters, volume.Spec.Settings, volume.Spec.MutableParameters = free(), free(), free()
	volume.Spec.Access.Mounts = []v1alpha1.VolumeMount{{Filesystem: "ext4", Options: []string{password}}}
	volume.Status.MutableParameters, volume.Status.Message = free(), password
	volume.Status.Use = &v1alpha1.VolumeUse{Question: "1", Message: password}
	storage := &v1alpha1.NodeStorage{ObjectMeta: meta("node-1")}
	storage.Status.Pools = []v1alpha1.PoolStatus{{Name: "disks", Problem: password}}
	storage.Status.LocalVolumes = []v1alpha1.LocalVolumeStatus{{Name: "disk-1", Message: password}}
	return []client.Object{set, volume, storage}
}

// collect makes a bundle of a cluster that does not let it read Secrets, ConfigMaps, and lists of the denied types.
func collect(t *testing.T, logs Logs, denied ...string) map[string]string {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster()...).
		WithObjects(own()...).Build(),
		interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				switch list.(type) {
				case *corev1.SecretList, *corev1.ConfigMapList:
					t.Errorf("%T is asked for", list)
				}
				if slices.Contains(denied, fmt.Sprintf("%T", list)) {
					return errors.New("it must not be listed")
				}
				return c.List(ctx, list, options...)
			},
		})
	seen, err := doctor.Read(t.Context(), api)
	if err != nil {
		t.Fatal(err)
	}
	seen.ReadOwn(t.Context(), api)
	var out bytes.Buffer
	if err := Write(t.Context(), &out, seen, logs, time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	return unpack(t, &out)
}

func TestNoSecretGetsIn(t *testing.T) {
	files := collect(t, func(context.Context, string, string, *corev1.PodLogOptions) (io.ReadCloser, error) {
		lines := []string{
			"mounted with password=" + canary, `{"token":"` + canary + `"}`, `secret="two words ` + canary + `"`,
			"authorization: bearer " + canary, "node-1 is fine",
			"mounted with pwd=" + canary, "dial https://user:" + canary + "@collector:4317: refused",
			"dial https://user:a@" + canary + "@collector:4317: refused", "dial https://me@corp:" + canary + "@collector:4317",
		}
		return io.NopCloser(strings.NewReader(strings.Join(lines, "\n"))), nil
	})
	for name, content := range files {
		if at := strings.Index(content, canary); at >= 0 {
			t.Errorf("%s has the secret: %s", name, content[max(0, at-200):at+len(canary)])
		}
	}
	for name, want := range map[string]string{
		"objects/volumes.json": "the-handle", "objects/claims.json": `"data"`, "objects/classes.json": "nfs.example.org",
		"objects/pods.json": `"claimName"`, "objects/own-pods.json": "--backend=nfs",
		"objects/events.json":      "ProvisioningFailed",
		"objects/volume-sets.json": `"pool=fast,token=`, "objects/local-volumes.json": `"ext4"`,
		"objects/node-storages.json":   `"disk-1"`,
		"logs/shop/driver/stowage.log": "node-1 is fine", "logs/shop/driver/stowage.previous.log": "node-1 is fine",
		"logs/shop/driver/init.log": "",
		"doctor.txt":                "claim shop/data", "notes.txt": "2001-09-09",
	} {
		if content, there := files[name]; !there || !strings.Contains(content, want) {
			t.Errorf("%s has not %q:\n%s", name, want, content)
		}
	}
	if !strings.Contains(files["objects/own-pods.json"], `"volume-worker"`) {
		t.Error("the subcommand of a program of Stowage is hidden")
	}
	if strings.Contains(files["objects/events.json"], "Unhealthy") {
		t.Error("there is an event that may quote what a program said")
	}
	for name := range files {
		if strings.HasPrefix(name, "logs/shop/web/") {
			t.Errorf("there is %s, the log of a pod that is not Stowage's", name)
		}
	}
}

// TestKindsThatCannotBeRead has a caller that must not list two of Stowage's own kinds. The bundle has the rest, and
// its notes name both.
func TestKindsThatCannotBeRead(t *testing.T) {
	files := collect(t, func(context.Context, string, string, *corev1.PodLogOptions) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("here")), nil
	}, "*v1alpha1.NodeStorageList", "*v1alpha1.PersistentVolumeSetList")
	for name, want := range map[string]string{
		"objects/node-storages.json": "[]", "objects/volume-sets.json": "[]", "objects/local-volumes.json": `"local-volume"`,
		"objects/claims.json": `"data"`,
	} {
		if content, there := files[name]; !there || !strings.Contains(content, want) {
			t.Errorf("%s has not %q:\n%s", name, want, content)
		}
	}
	for _, kind := range []string{"NodeStorages", "PersistentVolumeSets"} {
		want := "the list of " + kind + " is not complete: "
		if notes := files["notes.txt"]; !strings.Contains(notes, want) || !strings.Contains(notes, "it must not be listed") {
			t.Errorf("the notes are:\n%s\nwant %q", notes, want)
		}
	}
}

func TestLogThatCannotBeRead(t *testing.T) {
	files := collect(t, func(_ context.Context, _, _ string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
		if o.Container == "stowage" {
			return nil, errors.New("the node does not answer")
		}
		return io.NopCloser(strings.NewReader("here")), nil
	})
	if notes := files["notes.txt"]; !strings.Contains(notes,
		"logs/shop/driver/stowage.log is not complete: the node does not answer") {
		t.Errorf("the notes are:\n%s", notes)
	}
	if files["logs/shop/driver/init.log"] != "here\n" {
		t.Errorf("the other log is %q", files["logs/shop/driver/init.log"])
	}
}

// TestLongLogKeepsItsEnd has a container whose log is longer than a bundle takes. The end of the log is what a report
// is about.
func TestLongLogKeepsItsEnd(t *testing.T) {
	files := collect(t, func(_ context.Context, _, _ string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
		var log strings.Builder
		for i := range 1100 {
			fmt.Fprintf(&log, "line %d %s\n", i, strings.Repeat("x", mostBytes/1000))
		}
		text := log.String()
		if o.LimitBytes != nil { // The kubelet stops there.
			text = text[:min(len(text), int(*o.LimitBytes))]
		}
		return io.NopCloser(strings.NewReader(text)), nil
	})
	const name = "logs/shop/driver/stowage.log"
	if log := files[name]; len(log) > mostBytes || !strings.Contains(log, "line 1099 ") ||
		strings.Contains(log, "line 0 ") {
		t.Errorf("the log has %d bytes: %.40s ... %.40s", len(log), log, log[len(log)-min(len(log), mostBytes/1000+20):])
	}
	if notes := files["notes.txt"]; !strings.Contains(notes, name+" is not complete: its first ") {
		t.Errorf("the notes are:\n%s", notes)
	}
}
