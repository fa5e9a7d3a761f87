package metadata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// far is the timeout for a service that all nodes ask at the same time when a cluster starts.
const far = 10 * time.Second

// Orchestrator returns the orchestrator's node object as a Source. Parse parses the cloud's form of a providerID, and
// fails as Get does. Fields of the providerID take precedence, since it identifies the machine.
func Orchestrator(node backends.NodeSource, parse func(providerID string) (Instance, error)) Source {
	return Source{Name: node.Name, Timeout: far, Get: func(ctx context.Context) (Instance, error) {
		info, err := node.Get(ctx)
		if err != nil {
			return Instance{}, err
		}
		if info.ProviderID == "" {
			return Instance{}, errors.New("has no providerID (yet): is the cloud's controller manager at work?")
		}
		instance, err := parse(info.ProviderID)
		if err != nil {
			return Instance{}, err
		}
		instance.Type = cmp.Or(instance.Type, info.Type)
		instance.Zone = cmp.Or(instance.Zone, info.Zone)
		instance.Region = cmp.Or(instance.Region, info.Region)
		return instance, nil
	}}
}

// Only restricts a Source to the machine with the ID. An answer about another machine is an error, which names somebody
// as the origin of the ID.
func Only(id, somebody string, source Source) Source {
	get := source.Get
	source.Get = func(ctx context.Context) (Instance, error) {
		instance, err := get(ctx)
		if err == nil && instance.ID != id {
			return Instance{}, fmt.Errorf("says that this is %q, and %s that it is %q", instance.ID, somebody, id)
		}
		return instance, err
	}
	return source
}
