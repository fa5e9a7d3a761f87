package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stowage-csi/stowage/pkg/disks/scrub"
)

// scrubCommand returns the command that the pods of stowage-manager's recycler run.
func scrubCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "scrub",
		Short: "Remove all data from the volume at a path, for good",
		Long: `Remove all data from one volume, for good. Where a filesystem is mounted at the path, all files go; a block device becomes zero.
Both are looked at again. Only a complete scrub succeeds: one that is stopped before fails, and its volume must be
scrubbed again. The pods that stowage-manager makes to recycle volumes run this.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if path == "" {
				return errors.New("--path is missing: name the mount point or block device of the volume whose data are to go")
			}
			err := scrub.Path(cmd.Context(), path, func(percent int) {
				fmt.Fprintf(cmd.ErrOrStderr(), "%d %% of the device is zero\n", percent)
			})
			if err != nil && cmd.Context().Err() != nil {
				return fmt.Errorf("the scrub of %s was cut short, and data may be left: scrub it again: %w", path, err)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&path, "path", "", "the mount point or block device of the volume")
	return cmd
}
