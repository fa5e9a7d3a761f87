package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// suffix ends the names of Stowage's drivers, after the backend's name.
const suffix = ".csi.stowage.dev"

// role is the task of a driver's pod. A pod of the standalone role has both tasks.
type role string

const (
	controllers role = "controller"
	nodes       role = "node"
	standalone  role = "standalone"
)

// servants returns the pods that run a Stowage driver in a role, on a node, or on any node if node is empty.
func (c *Cluster) servants(driver string, does role, node string) (pods []*corev1.Pod) {
	for i := range c.Pods {
		p := &c.Pods[i]
		if (node == "" || p.Spec.NodeName == node) && serves(p, strings.TrimSuffix(driver, suffix), does) {
			pods = append(pods, p)
		}
	}
	return pods
}

// serves reports whether a pod runs the driver of a backend in a role. A cluster's local volumes have a master, and on
// each node a standalone driver. If a worker runs beside that driver, the driver only mounts.
func serves(p *corev1.Pod, backend string, does role) bool {
	has := func(arg string) bool { return runs(p, func(a string) bool { return a == arg }) }
	switch isServing := has("--backend=" + backend); {
	case backend == "local" && does == controllers && has("master"):
		return runs(p, func(a string) bool { return strings.HasPrefix(a, "--csi-endpoint=") })
	case isServing && has(string(standalone)):
		return does == nodes || !has("volume-worker")
	default:
		return isServing && has(string(does))
	}
}

// runs reports whether a container of a pod has such an argument.
func runs(p *corev1.Pod, is func(arg string) bool) bool {
	return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return slices.ContainsFunc(c.Args, is) })
}

// controller examines the pods that create, attach and delete for a driver. It finds nothing if one of them is ready,
// or if the driver is not Stowage's.
func (c *Cluster) controller(driver string) []Finding {
	if !strings.HasSuffix(driver, suffix) {
		return nil
	}
	return c.serving(driver, controllers, "", "nothing is created, attached, expanded or deleted until one is")
}

// plugin examines the pod that mounts for a driver on a node.
func (c *Cluster) plugin(driver, node string) []Finding {
	if !strings.HasSuffix(driver, suffix) {
		return nil
	}
	return c.serving(driver, nodes, node, "nothing is mounted or unmounted on this node until it is")
}

// serving finds why no pod of a role is ready.
func (c *Cluster) serving(driver string, does role, node, meanwhile string) (found []Finding) {
	object := "driver " + driver
	if node != "" {
		object += " on node " + node
	}
	pods := c.servants(driver, does, node)
	if len(pods) == 0 {
		return []Finding{{Object: object, Verdict: Broken,
			Says:   fmt.Sprintf("no pod runs the driver's %s: %s", does, meanwhile),
			Advice: "install the driver, or look at the node selector and tolerations of its pods"}}
	}
	for _, p := range pods {
		f := sick(p)
		if f == nil {
			return nil
		}
		f.Says += ": " + meanwhile
		found = append(found, *f)
	}
	return found
}

// sick reports why a pod is not ready, or nil if it is.
func sick(p *corev1.Pod) *Finding {
	ready := find(p.Status.Conditions, func(c *corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	if ready != nil && ready.Status == corev1.ConditionTrue {
		return nil
	}
	f := &Finding{Object: podName(p), Verdict: Broken, Says: "the pod is not ready",
		Advice: fmt.Sprintf("kubectl describe pod %s --namespace %s", p.Name, p.Namespace)}
	// Init containers come first, because the others wait for them.
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if s.Ready {
			continue
		}
		f.Says = fmt.Sprintf("the container %s is not ready and was restarted %d times", s.Name, s.RestartCount)
		f.Advice = fmt.Sprintf("kubectl logs %s --namespace %s --container %s", p.Name, p.Namespace, s.Name)
		if w := s.State.Waiting; w != nil {
			f.Proof = w.Reason + ": " + w.Message
		}
		if t := s.LastTerminationState.Terminated; t != nil {
			f.Advice += " --previous"
			f.Proof = cmp.Or(f.Proof, fmt.Sprintf("%s with exit code %d", t.Reason, t.ExitCode))
		}
		break
	}
	return f
}

func podName(p *corev1.Pod) string { return "pod " + p.Namespace + "/" + p.Name }

// OwnPods returns the pods that run programs of Stowage: pods with a driver's arguments, and pods with the labels of an
// installation.
func (c *Cluster) OwnPods() (pods []corev1.Pod) {
	for _, p := range c.Pods {
		serves := slices.ContainsFunc(p.Spec.Containers, func(container corev1.Container) bool {
			return slices.ContainsFunc(container.Args, func(arg string) bool { return strings.HasPrefix(arg, "--backend=") })
		})
		if p.Labels["app.kubernetes.io/part-of"] == "stowage" || serves {
			pods = append(pods, p)
		}
	}
	return pods
}
