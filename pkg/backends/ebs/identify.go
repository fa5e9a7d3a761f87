package ebs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/metadata"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// identify finds out which instance this is: the one that the options name, or else the one that the metadata service
// or the orchestrator reports. Other facts, such as the zone, come only from a source that reports the same instance.
// Kinds: Unavailable when there is no ID.
func identify(ctx context.Context, imds service, options backends.Options) (metadata.Instance, error) {
	if options.Node == nil { // a process that serves the controller only
		return metadata.Instance{ID: options.NodeID}, nil
	}
	sources := []metadata.Source{imds.source(), metadata.Orchestrator(*options.Node, ofProviderID)}
	if options.NodeID == "" {
		self, err := metadata.First(ctx, append(sources, unset())...)
		if err == nil {
			options.Log.Info("this instance is known", "instance", self.ID, "type", self.Type, "zone", self.Zone, "from",
				self.From)
		}
		return self, err
	}
	for i, source := range sources {
		sources[i] = metadata.Only(options.NodeID, "--node-id", source)
	}
	self, err := metadata.First(ctx, sources...)
	if err != nil {
		options.Log.Warn("only EC2 can tell in which zone this instance is", "instance", options.NodeID, "reason",
			failure.OneLine(err).Error())
	}
	self.ID = options.NodeID
	return self, nil
}

// unset returns the last source: a flag that is not set.
func unset() metadata.Source {
	return metadata.Source{Name: "--node-id", Get: func(context.Context) (metadata.Instance, error) {
		return metadata.Instance{}, errors.New("is not set: set it, such as i-0123456789abcdef0, or see to one of the others")
	}}
}

// ofProviderID parses a providerID of AWS's cloud controller manager: aws:///us-east-1a/i-0123456789abcdef0, where the
// zone may be missing.
func ofProviderID(providerID string) (metadata.Instance, error) {
	path, ok := strings.CutPrefix(providerID, "aws:///")
	zone, id, cut := strings.Cut(path, "/")
	if !ok || !cut || !isID("i", id) || !only("abcdefghijklmnopqrstuvwxyz0123456789-", zone) {
		return metadata.Instance{},
			fmt.Errorf("has the providerID %q, which is that of no EC2 instance, such as aws:///us-east-1a/i-0123456789abcdef0",
				providerID)
	}
	return metadata.Instance{ID: id, Zone: zone}, nil
}
