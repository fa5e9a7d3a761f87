package tests

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

func ebsConfig(config map[string]any) map[string]any {
	return map[string]any{"backend": "ebs", "ebs": map[string]any{"config": config}}
}

// TestNodesOfEBS checks that the driver on a node finds out its instance by itself: what Kubernetes calls the node is no instance's ID.
func TestNodesOfEBS(t *testing.T) {
	objects := kustomized(t, "kubernetes/overlays/ebs")
	driver := container(t, pods(t, objects)["DaemonSet/stowage-system/stowage-ebs-node"], "stowage")
	if !slices.Contains(driver.Args, "--node-name=$(NODE_NAME)") ||
		slices.ContainsFunc(driver.Args, func(arg string) bool { return strings.HasPrefix(arg, "--node-id") }) {
		t.Errorf("the driver has %q, want --node-name and no --node-id", driver.Args)
	}
	if !slices.ContainsFunc(driver.Env, func(e corev1.EnvVar) bool {
		return e.Name == "NODE_NAME" && e.ValueFrom.FieldRef.FieldPath == "spec.nodeName"
	}) {
		t.Errorf("the driver has the variables %v", driver.Env)
	}
}

// TestOneTokenOfAWS checks that EKS gives the token for the role in AWS to the driver only.
func TestOneTokenOfAWS(t *testing.T) {
	for id, pod := range pods(t, kustomized(t, "kubernetes/overlays/ebs")) {
		var others []string
		for _, c := range pod.Spec.Containers {
			if c.Name != "stowage" {
				others = append(others, c.Name)
			}
		}
		skipped := strings.Split(pod.Annotations["eks.amazonaws.com/skip-containers"], ",")
		slices.Sort(others)
		slices.Sort(skipped)
		if !slices.Equal(skipped, others) {
			t.Errorf("%s: %q are skipped, want %q", id, skipped, others)
		}
	}
}

// TestValuesOfEBS checks what the values for AWS change.
func TestValuesOfEBS(t *testing.T) {
	values := map[string]any{"backend": "ebs", "ebs": map[string]any{
		"region": "eu-central-1", "credentialsSecret": "keys",
		"config": map[string]any{
			"clusterID": "production", "extraTags": map[string]any{"team": "storage"}, "reservedAttachments": 1, "volumeAttachLimit": 20,
			"rates": map[string]any{"CreateVolume": map[string]any{"burst": 100, "perSecond": 9.5}},
		},
	}}
	arn := "arn:aws:iam::111122223333:role/"
	for _, side := range []string{"controller", "node"} {
		values[side] = map[string]any{"serviceAccount": map[string]any{"annotations": map[string]any{"eks.amazonaws.com/role-arn": arn + side}}}
	}
	objects := charted(t, values, false)
	config := typed(t, find(t, objects, "ConfigMap/stowage-system/stowage-ebs-config")).(*corev1.ConfigMap)
	for _, want := range []string{"clusterID: production", "team: storage", "reservedAttachments: 1", "volumeAttachLimit: 20", "perSecond: 9.5"} {
		if !strings.Contains(config.Data["config.yaml"], want) {
			t.Errorf("the configuration has no %q:\n%s", want, config.Data["config.yaml"])
		}
	}
	for id, pod := range pods(t, objects) {
		driver := container(t, pod, "stowage")
		variables := map[string]string{}
		for _, e := range driver.Env {
			if variables[e.Name] = e.Value; e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				variables[e.Name] = e.ValueFrom.SecretKeyRef.Name + "/" + e.ValueFrom.SecretKeyRef.Key
			}
		}
		delete(variables, "NODE_NAME")
		want := map[string]string{"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "keys/key_id", "AWS_SECRET_ACCESS_KEY": "keys/access_key"}
		if !maps.Equal(variables, want) {
			t.Errorf("%s: the driver has the variables %v, want %v", id, variables, want)
		}
		if !slices.Contains(driver.Args, "--config=/etc/stowage/config.yaml") || pod.Annotations["checksum/config"] == "" {
			t.Errorf("%s has no configuration, or would keep an old one: %q", id, driver.Args)
		}
	}
	for _, side := range []string{"controller", "node"} {
		account := typed(t, find(t, objects, "ServiceAccount/stowage-system/stowage-ebs-"+side)).(*corev1.ServiceAccount)
		if account.Annotations["eks.amazonaws.com/role-arn"] != arn+side {
			t.Errorf("the account of the %s has the annotations %v", side, account.Annotations)
		}
	}
}

// TestNothingOfAWSUnlessAsked checks that no variable is there that would keep EKS from setting it.
func TestNothingOfAWSUnlessAsked(t *testing.T) {
	for id, pod := range pods(t, kustomized(t, "kubernetes/overlays/ebs")) {
		for _, c := range pod.Spec.Containers {
			if i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return strings.HasPrefix(e.Name, "AWS_") }); i >= 0 {
				t.Errorf("%s: %s has %s", id, c.Name, c.Env[i].Name)
			}
		}
	}
}

// TestLimitsAreAskedForAgain checks the one field of a CSIDriver that not every version of Kubernetes has.
func TestLimitsAreAskedForAgain(t *testing.T) {
	for _, row := range []struct {
		kubernetes string
		values     map[string]any
		want       int64
	}{
		{"v1.36.3", map[string]any{}, 600},
		{"v1.33.0-eks-1234567", map[string]any{}, 600},
		{"v1.32.9-eks-1234567", map[string]any{}, 0},
		{"v1.36.3", map[string]any{"nodeAllocatableUpdatePeriodSeconds": 60}, 60},
		{"v1.36.3", map[string]any{"nodeAllocatableUpdatePeriodSeconds": 0}, 0},
	} {
		files, err := renderedOn(row.kubernetes, map[string]any{"backend": "ebs", "ebs": row.values}, false)
		if err != nil {
			t.Fatal(err)
		}
		driver := typed(t, decoded(t, []byte(files["stowage/templates/csidriver.yaml"]))[0]).(*storagev1.CSIDriver)
		have := int64(0)
		if p := driver.Spec.NodeAllocatableUpdatePeriodSeconds; p != nil {
			have = *p
		}
		if have != row.want {
			t.Errorf("on Kubernetes %s with %v: every %d s, want %d", row.kubernetes, row.values, have, row.want)
		}
	}
}
