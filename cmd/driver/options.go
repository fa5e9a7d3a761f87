package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/driver"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/openfiles"
	"github.com/stowage-csi/stowage/pkg/safepath"
	"github.com/stowage-csi/stowage/pkg/strictyaml"
)

// options are the flags of the commands that serve.
type options struct {
	role                                                                role
	backend, endpoint, dataDir, nodeID, config, httpEndpoint, logFormat string
	otlpEndpoint, nodeName, holds                                       string
	traceRatio                                                          float64
	verbosity                                                           int
	delegateFSGroup                                                     bool
	maxFormats                                                          int
	files                                                               openfiles.Bound
	topology                                                            map[string]string
	grace, drainGrace                                                   time.Duration
}

func (o *options) bind(cmd *cobra.Command, registry backends.Registry) {
	flags := cmd.Flags()
	flags.StringVar(&o.backend, "backend", o.role.backend(),
		"the kind of storage: "+strings.Join(registry.Names(), " or "))
	flags.StringVar(&o.endpoint, "endpoint", defaultEndpoint(),
		"the socket to serve CSI on: unix:///path or a bare path; CSI_ENDPOINT in the environment sets another default")
	flags.StringVar(&o.dataDir, "data-dir", "/var/lib/stowage",
		"the directory that holds everything the driver keeps; it is created if it is missing")
	flags.StringVar(&o.config, "config", "", "a YAML file that configures the backend, such as its pools")
	flags.StringVar(&o.httpEndpoint, "http-endpoint", "",
		"an address such as 127.0.0.1:9808 for /metrics and /healthz (default: none)")
	flags.StringVar(&o.logFormat, "log-format", "text", "text or json")
	flags.IntVarP(&o.verbosity, "v", "v", 0, "how much to log: 4 shows each request, 5 its message without secrets")
	flags.StringVar(&o.otlpEndpoint, "otlp-endpoint", "",
		"a URL such as http://collector:4317 to send OpenTelemetry traces to, by OTLP over gRPC (default: none)")
	flags.Float64Var(&o.traceRatio, "trace-ratio", 1,
		"the part of all requests that is traced, from 0 to 1; a request whose caller is traced always is")
	o.files.Bind(flags, 0)
	flags.DurationVar(&o.grace, "shutdown-grace", 20*time.Second,
		"how long requests under way may take to finish at the end")
}

// defaultEndpoint returns the endpoint of a driver without a configured one.
func defaultEndpoint() string {
	return cmp.Or(os.Getenv("CSI_ENDPOINT"), "unix:///run/stowage/csi.sock")
}

// bindController adds the flags that apply only to a controller.
func (o *options) bindController(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.holds, "holds", "",
		"a socket such as unix:///csi/holds.sock at which stowage-manager says whether a node uses a volume that is to be "+
			"detached; while it says nothing, nothing is detached (default: none)")
}

// bindNode adds the flags that apply only where volumes are mounted.
func (o *options) bindNode(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.nodeID, "node-id", "", "this node's ID (default: the host's name; "+
		"for ebs, the instance's ID from its metadata service or from Kubernetes)")
	flags.StringVar(&o.nodeName, "node-name", "",
		"this node's name in Kubernetes, for ebs to read its Node object when the metadata service cannot be reached, and "+
			"for --drain-grace (default: none)")
	flags.DurationVar(&o.drainGrace, "drain-grace", 0,
		"how long the driver of a backend that attaches volumes serves on after it was told to stop, while its node is "+
			"being drained and has volumes of it, as the Node object of --node-name says (default: not at all)")
	flags.BoolVar(&o.delegateFSGroup, "delegate-fsgroup", false,
		"apply a pod's fsGroup in the driver (VOLUME_MOUNT_GROUP) instead of the kubelet")
	flags.StringToStringVar(&o.topology, "topology", nil,
		"where this node is, for a backend that cannot find out by itself: topology.kubernetes.io/zone=a,…")
	flags.IntVar(&o.maxFormats, "max-concurrent-formats", node.DefaultMaxFormats,
		"how many filesystems may be made, checked or repaired at the same time on this node; each takes memory in "+
			"proportion to its disk")
}

// complete checks the flags, and sets those that depend on the machine.
func (o *options) complete(definition backends.Definition) error {
	clean, err := safepath.Absolute(o.dataDir)
	if err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	o.dataDir = clean
	if o.logFormat != "text" && o.logFormat != "json" {
		return fmt.Errorf("--log-format is %q: use text or json", o.logFormat)
	}
	if o.nodeID == "" && o.role != onlyController && !definition.FindsNode {
		if o.nodeID, err = os.Hostname(); err != nil {
			return fmt.Errorf("--node-id is not given and the host's name cannot be read: %w", err)
		}
	}
	if err := o.checkNumbers(); err != nil {
		return err
	}
	if _, err := o.collector(); err != nil {
		return fmt.Errorf("--otlp-endpoint: %w", err)
	}
	for key, value := range o.topology {
		if value == "" {
			return fmt.Errorf("--topology has no value for %s: does the node have that label?", key)
		}
	}
	if len(o.nodeID) > driver.MaxNodeID {
		return fmt.Errorf("--node-id has %d bytes: CSI allows %d at most", len(o.nodeID), driver.MaxNodeID)
	}
	return nil
}

// checkNumbers refuses numbers outside their ranges.
func (o *options) checkNumbers() error {
	switch {
	case o.verbosity < 0: // It would hide errors.
		return fmt.Errorf("-v is %d: it must be 0 at least", o.verbosity)
	case o.grace < 0:
		return fmt.Errorf("--shutdown-grace is %s: it must be 0s or more", o.grace)
	case o.drainGrace < 0:
		return fmt.Errorf("--drain-grace is %s: it must be 0s or more", o.drainGrace)
	case o.drainGrace > 0 && o.nodeName == "":
		return errors.New("--drain-grace needs --node-name: the Node object says whether the node is being drained")
	case !(o.traceRatio >= 0 && o.traceRatio <= 1): // NaN fails both comparisons.
		return fmt.Errorf("--trace-ratio is %g: it must be from 0 to 1", o.traceRatio)
	case o.maxFormats < 1 && o.role != onlyController:
		return fmt.Errorf("--max-concurrent-formats is %d: it must be 1 at least", o.maxFormats)
	}
	return o.files.Check()
}

// load reads the backend's configuration strictly.
func (o *options) load(definition backends.Definition) (any, error) {
	if definition.NewConfig == nil {
		if o.config != "" {
			return nil, fmt.Errorf("--config is given, and the backend %s has nothing to configure", definition.Name)
		}
		return nil, nil // backends.Options.Config is nil without a configuration
	}
	value := definition.NewConfig()
	if o.config == "" {
		return value, nil
	}
	text, err := os.ReadFile(o.config)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	if err := strictyaml.Unmarshal(text, value); err != nil {
		return nil, fmt.Errorf("--config: %s: %w", o.config, err)
	}
	return value, nil
}
