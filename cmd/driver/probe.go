package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stowage-csi/stowage/pkg/driver"
)

// probeCommand returns the command that the kubelet runs beside a driver to decide whether to restart it. It uses no
// port: peers on the network could block answers on one.
func probeCommand() *cobra.Command {
	var endpoint string
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "Ask the driver at a socket whether it is ready",
		Long: `Ask the driver at a socket whether it is ready, and fail if it is not or does not answer. Kubernetes runs this beside
the driver, and restarts the driver after it has failed some times.`,
		Example: `  stowage probe --endpoint=unix:///csi/csi.sock`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit <= 0 {
				return fmt.Errorf("--timeout is %s: it must be more than 0s", limit)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), limit)
			defer cancel()
			return driver.Probe(ctx, endpoint)
		},
	}
	cmd.Flags().StringVar(&endpoint, "endpoint", defaultEndpoint(),
		"the socket that the driver serves: unix:///path or a bare path; CSI_ENDPOINT in the environment sets another "+
			"default")
	cmd.Flags().DurationVar(&limit, "timeout", 5*time.Second, "how long the driver has to answer")
	return cmd
}
