package tests

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

func ebsConfig(config map[string]any) map[string]any {
	return map[string]any{"backend": "ebs", "ebs": map[string]any{"config": config}}
}

// TestNodesOfEBS checks that the driver on a node determines its instance by itself: Kubernetes' name of the node is
// not an instance ID.
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

// TestNodesOfEBSOutlastADrain checks that the driver can serve while its node is drained, with time to end, and that
// the registrar, which the kubelet needs to unmount, runs as long.
func TestNodesOfEBSOutlastADrain(t *testing.T) {
	values := map[string]any{"backend": "ebs", "node": map[string]any{"drainGraceSeconds": 600}}
	for name, row := range map[string]struct {
		objects []object
		want    time.Duration
	}{
		"kustomize": {kustomized(t, "kubernetes/overlays/ebs"), 90 * time.Second},
		"chart":     {charted(t, values, false), 10 * time.Minute},
	} {
		pod := pods(t, row.objects)["DaemonSet/stowage-system/stowage-ebs-node"]
		flag := fmt.Sprintf("--drain-grace=%gs", row.want.Seconds())
		if args := container(t, pod, "stowage").Args; !slices.Contains(args, flag) {
			t.Errorf("%s: the driver has %q", name, args)
		}
		// The default of --shutdown-grace, and the limits for the end of the server, of HTTP and of traces.
		const shutdown, ends = 20 * time.Second, 20 * time.Second
		if has := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second; has < row.want+shutdown+ends {
			t.Errorf("%s: the pod is killed after %s, and the driver may take %s, %s and %s", name, has, row.want, shutdown,
				ends)
		}
		driver := container(t, pod, "stowage")
		for kind, probe := range map[string]*corev1.Probe{"starts": driver.StartupProbe, "is alive": driver.LivenessProbe} {
			if probe.TerminationGracePeriodSeconds == nil || *probe.TerminationGracePeriodSeconds != 30 {
				t.Errorf("%s: a driver that does not say that it %s is given %v", name, kind, probe.TerminationGracePeriodSeconds)
			}
		}
		before := pod.Spec.InitContainers
		if len(before) != 2 || before[0].Image != driver.Image || before[1].Name != "node-driver-registrar" ||
			before[1].RestartPolicy == nil || *before[1].RestartPolicy != corev1.ContainerRestartPolicyAlways {
			t.Errorf("%s: the registrar ends with the driver, or starts before its image is there: %v", name, before)
		}
	}
}

// TestOneTokenOfAWS checks that EKS gives the token for the AWS role only to the driver.
func TestOneTokenOfAWS(t *testing.T) {
	all := pods(t, kustomized(t, "kubernetes/overlays/ebs"))
	for id, pod := range pods(t, kustomized(t, "kubernetes/overlays/ebs-manager")) {
		all[id+" with the manager"] = pod
	}
	for id, pod := range all {
		var others []string
		for _, c := range containers(pod) {
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

// TestValuesOfEBS checks the effects of the values for AWS.
func TestValuesOfEBS(t *testing.T) {
	values := map[string]any{"backend": "ebs", "ebs": map[string]any{
		"region": "eu-central-1", "credentialsSecret": "keys",
		"config": map[string]any{
			"clusterID": "production", "extraTags": map[string]any{"team": "storage"}, "reservedAttachments": 1,
			"volumeAttachLimit": 20,
			"rates":             map[string]any{"CreateVolume": map[string]any{"burst": 100, "perSecond": 9.5}},
		},
	}}
	arn := "arn:aws:iam::111122223333:role/"
	for _, side := range []string{"controller", "node"} {
		values[side] = map[string]any{"serviceAccount": map[string]any{
			"annotations": map[string]any{"eks.amazonaws.com/role-arn": arn + side},
		}}
	}
	objects := charted(t, values, false)
	config := typed(t, find(t, objects, "ConfigMap/stowage-system/stowage-ebs-config")).(*corev1.ConfigMap)
	for _, want := range []string{"clusterID: production", "team: storage", "reservedAttachments: 1",
		"volumeAttachLimit: 20", "perSecond: 9.5"} {
		if !strings.Contains(config.Data["config.yaml"], want) {
			t.Errorf("the configuration has no %q:\n%s", want, config.Data["config.yaml"])
		}
	}
	for id, pod := range pods(t, objects) {
		want := map[string]string{"AWS_REGION": "eu-central-1"}
		if strings.HasPrefix(id, "Deployment/") { // Whoever breaks into a node must not get keys that delete volumes.
			want["AWS_ACCESS_KEY_ID"], want["AWS_SECRET_ACCESS_KEY"] = "keys/key_id", "keys/access_key"
		}
		checkConfigured(t, id, pod, config.Name, want)
		if pod.Annotations["checksum/config"] == "" {
			t.Errorf("%s would keep an old configuration", id)
		}
	}
	for _, side := range []string{"controller", "node"} {
		checkRole(t, objects, side, arn+side)
	}
	driver := container(t, pods(t, objects)["Deployment/stowage-system/stowage-ebs-controller"], "stowage")
	if slices.ContainsFunc(driver.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "api" }) {
		t.Error("the controller is told which cluster this is, and has a token all the same")
	}
}

// checkConfigured checks the AWS variables and the configuration of the driver's container.
func checkConfigured(t *testing.T, id string, pod corev1.PodTemplateSpec, config string, want map[string]string) {
	t.Helper()
	driver := container(t, pod, "stowage")
	variables := map[string]string{}
	for _, e := range driver.Env {
		if variables[e.Name] = e.Value; e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			variables[e.Name] = e.ValueFrom.SecretKeyRef.Name + "/" + e.ValueFrom.SecretKeyRef.Key
		}
	}
	delete(variables, "GOMEMLIMIT") // TestMemory checks it.
	_, named := variables["NODE_NAME"]
	if delete(variables, "NODE_NAME"); !maps.Equal(variables, want) || named != strings.HasPrefix(id, "DaemonSet/") {
		t.Errorf("%s: the driver has the variables %v, want %v and NODE_NAME on nodes", id, driver.Env, want)
	}
	if !slices.Contains(driver.Args, "--config=/etc/stowage/config.yaml") ||
		!slices.ContainsFunc(driver.VolumeMounts,
			func(m corev1.VolumeMount) bool { return m.Name == "config" && m.MountPath == "/etc/stowage" }) ||
		!slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.Name == "config" && v.ConfigMap != nil && v.ConfigMap.Name == config
		}) {
		t.Errorf("%s has not the configuration %s: %q", id, config, driver.Args)
	}
}

func checkRole(t *testing.T, objects []object, side, arn string) {
	t.Helper()
	account := typed(t, find(t, objects, "ServiceAccount/stowage-system/stowage-ebs-"+side)).(*corev1.ServiceAccount)
	if account.Annotations["eks.amazonaws.com/role-arn"] != arn {
		t.Errorf("the account of the %s has the annotations %v, want the role %s", side, account.Annotations, arn)
	}
}

// TestSchemaOfEBS checks that the chart's schema has the keys of the driver's configuration, and the actions that the
// driver requests.
func TestSchemaOfEBS(t *testing.T) {
	var schema struct {
		Properties struct {
			EBS struct {
				Properties struct {
					Config struct {
						Properties map[string]struct {
							PropertyNames struct{ Enum []string }
						}
					}
				}
			}
		}
	}
	unmarshal(t, "../charts/stowage/values.schema.json", &schema)
	config := schema.Properties.EBS.Properties.Config.Properties
	source, err := os.ReadFile("../../pkg/backends/ebs/definition.go")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, match := range regexp.MustCompile(`json:"(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		keys = append(keys, match[1])
	}
	slices.Sort(keys)
	if have := slices.Sorted(maps.Keys(config)); !slices.Equal(have, keys) {
		t.Errorf("the schema has the keys %q, and the driver %q", have, keys)
	}
	var policy struct {
		Statement []struct{ Action any }
	}
	unmarshal(t, "../aws/controller-policy.json", &policy)
	text := fmt.Sprint(policy.Statement)
	for _, action := range config["rates"].PropertyNames.Enum {
		if !strings.Contains(text, "ec2:"+action) {
			t.Errorf("the schema has a rate for %s, which the driver may not ask for", action)
		}
	}
	for _, match := range regexp.MustCompile(`ec2:(\w+)`).FindAllStringSubmatch(text, -1) {
		if action := match[1]; !strings.HasPrefix(action, "Describe") &&
			!slices.Contains(config["rates"].PropertyNames.Enum, action) {
			t.Errorf("the schema has no rate for %s", action)
		}
	}
}

func unmarshal(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// TestGuideOfEBS checks that the kustomization in the guide has the documented effect.
func TestGuideOfEBS(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/ebs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(guide), "```yaml\n# kustomization.yaml\n")
	text, _, closed := strings.Cut(text, "```")
	overlay, err := filepath.Abs("../kubernetes/overlays/ebs")
	if err != nil || !found || !closed {
		t.Fatalf("the guide has no kustomization, or the overlay is nowhere: %v", err)
	}
	folder := t.TempDir()
	if overlay, err = filepath.Rel(folder, overlay); err != nil {
		t.Fatal(err)
	}
	text = strings.Replace(text, "github.com/stowage-csi/stowage/deploy/kubernetes/overlays/ebs", overlay, 1)
	for name, content := range map[string]string{"kustomization.yaml": text, "config.yaml": "clusterID: production\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	objects := kustomizedAt(t, folder)
	i := slices.IndexFunc(objects,
		func(o object) bool { return strings.HasPrefix(o.id(), "ConfigMap/stowage-system/stowage-ebs-config-") })
	if i < 0 {
		t.Fatal("there is no configuration")
	}
	for id, pod := range pods(t, objects) {
		checkConfigured(t, id, pod, objects[i].GetName(), map[string]string{"AWS_REGION": "eu-central-1"})
	}
	checkRole(t, objects, "controller", "arn:aws:iam::111122223333:role/stowage-ebs-controller")
}

// TestNothingOfAWSUnlessAsked checks that no variable exists that would prevent EKS from setting it.
func TestNothingOfAWSUnlessAsked(t *testing.T) {
	for id, pod := range pods(t, kustomized(t, "kubernetes/overlays/ebs")) {
		for _, c := range containers(pod) {
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
