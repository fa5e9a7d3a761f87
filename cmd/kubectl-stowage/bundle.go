package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/stowage-csi/stowage/pkg/doctor"
	"github.com/stowage-csi/stowage/pkg/doctor/bundle"
)

func bundleCommand() *cobra.Command {
	o, file := &options{}, ""
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Collect objects, events and logs for a report into one archive",
		Long: `Write one archive with the objects that have to do with volumes, their events, the logs of Stowage's pods, and what the doctor
says. Secrets and ConfigMaps are not read; environments, commands, foreign annotations and values named like secrets are
left out. Look through the archive before you give it away: it has names of your claims, pods and nodes. Nothing is changed.`,
		Example: "  kubectl stowage bundle --file=stowage.tar.gz",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			now := time.Now()
			if file == "" {
				file = "stowage-bundle-" + now.UTC().Format("20060102-150405") + ".tar.gz"
			}
			return o.bundle(cmd.Context(), cmd.OutOrStdout(), file, now)
		},
	}
	o.bind(cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "",
		"the archive, which must not exist yet (default: stowage-bundle-TIME.tar.gz)")
	return cmd
}

func (o *options) bundle(ctx context.Context, out io.Writer, path string, now time.Time) (err error) {
	api, _, err := o.connect()
	if err != nil {
		return err
	}
	config, _, err := o.cluster()
	if err != nil {
		return err
	}
	pods, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	seen, err := doctor.Read(ctx, api)
	if err != nil {
		return err
	}
	seen.ReadOwn(ctx, api)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("--file is %q: %w", path, err)
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(err, os.Remove(path)) // Half an archive is worse than none.
		}
	}()
	logs := func(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
		return pods.CoreV1().Pods(namespace).GetLogs(pod, o).Stream(ctx)
	}
	if err := bundle.Write(ctx, file, seen, logs, now); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, path)
	return err
}
