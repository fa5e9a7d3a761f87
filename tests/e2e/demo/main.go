package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/access"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/images"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
	"github.com/stowage-csi/stowage/tests/e2e/deployed"
)

func main() {
	data := flag.String("data", layout.DefaultData, "the folder of the cluster's data")
	tree := flag.String("tree", ".", "the root of the source tree")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, deployed.Options{Tree: *tree, Data: *data, Out: os.Stdout})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// claim is the manifest that a user writes.
const claim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: demo}
spec:
  storageClassName: stowage-local
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
`

// pod appends a line to a file in the volume, and prints the file.
const pod = `
apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: demo
    image: %[2]s
    command: [sh, -c, "echo $(date) from the pod %[1]s >> /data/log && sync && exec sleep 1000000"]
    readinessProbe: {exec: {command: [test, -s, /data/log]}, periodSeconds: 1}
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: demo}}]
`

func run(ctx context.Context, o deployed.Options) error {
	c, err := deployed.Up(ctx, o)
	if err != nil {
		return err
	}
	s := &shell{ctx: ctx, cluster: c}
	s.kubectl("", "delete", "pod", "writer", "reader", "--ignore-not-found")
	s.kubectl(claim, "apply", "-f", "-")
	s.kubectl(fmt.Sprintf(pod, "writer", images.BusyBox), "apply", "-f", "-")
	s.kubectl("", "wait", "pod/writer", "--for=condition=Ready", "--timeout=3m")
	s.kubectl("", "delete", "pod", "writer")
	s.kubectl(fmt.Sprintf(pod, "reader", images.BusyBox), "apply", "-f", "-")
	s.kubectl("", "wait", "pod/reader", "--for=condition=Ready", "--timeout=3m")
	s.kubectl("", "exec", "reader", "--", "cat", "/data/log")
	s.kubectl("", "get", "pvc,pv,pod")
	if s.err == nil {
		fmt.Printf("\nThe second pod has read what the first one wrote. Go on with it:\n\n  export KUBECONFIG=%s\n  "+
			"kubectl get pvc,pv,pod\n\n", c.Kubeconfig())
	}
	return s.err
}

// shell runs commands and prints them, until one fails.
type shell struct {
	ctx     context.Context
	cluster *access.Cluster
	err     error
}

func (s *shell) kubectl(input string, args ...string) {
	if s.err != nil {
		return
	}
	shown := "\n$ kubectl " + strings.Join(args, " ")
	if input != "" {
		shown += " <<EOF" + strings.TrimRight(input, "\n") + "\nEOF"
	}
	fmt.Println(shown)
	s.err = s.run(s.cluster.KubectlCommand(s.ctx, args...), input)
}

func (s *shell) run(cmd *exec.Cmd, input string) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return nil
}
