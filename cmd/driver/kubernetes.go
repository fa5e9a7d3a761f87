package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"

	"k8s.io/client-go/rest"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/mount"
)

// node is Kubernetes' object for this node, for a backend that has to find out which of the cloud's machines this is.
func (o *options) node() *backends.NodeSource {
	if o.role == onlyController {
		return nil
	}
	if o.nodeName == "" {
		return &backends.NodeSource{Name: "Kubernetes", Get: func(context.Context) (backends.NodeInfo, error) {
			return backends.NodeInfo{}, errors.New("was not asked, because --node-name is not set")
		}}
	}
	return &backends.NodeSource{
		Name: fmt.Sprintf("the Node object %q", o.nodeName),
		Get: func(ctx context.Context) (backends.NodeInfo, error) {
			config, err := rest.InClusterConfig()
			if err != nil {
				return backends.NodeInfo{}, fmt.Errorf("was not asked for, since this is no pod that may ask Kubernetes: %w", err)
			}
			return nodeInfo(ctx, config, o.nodeName)
		},
	}
}

// contained reports whether this process is in a pod, beside pods that use the volumes: the kubelet tells every container where
// the API is. With the host's own mount namespace, as after nsenter, it is as good as outside.
func contained() bool { return os.Getenv("KUBERNETES_SERVICE_HOST") != "" && !mount.OnHost() }

// nodeInfo reads a Node object. client-go's typed client would make the binary half as large again for this one request, so that only
// what it sends requests with is used.
func nodeInfo(ctx context.Context, config *rest.Config, name string) (info backends.NodeInfo, err error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return info, fmt.Errorf("cannot be asked for: %w", err)
	}
	defer client.CloseIdleConnections()
	address, err := url.JoinPath(config.Host, "api/v1/nodes", url.PathEscape(name))
	if err != nil {
		return info, fmt.Errorf("cannot be asked for: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return info, fmt.Errorf("cannot be asked for: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return info, fmt.Errorf("cannot be read, because Kubernetes is out of reach: %w", err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode != http.StatusOK {
		return info, refusal(answer.StatusCode)
	}
	return parseNode(answer.Body)
}

// refusal is what Kubernetes means by the status of its answer.
func refusal(code int) error {
	switch code {
	case http.StatusUnauthorized:
		return errors.New("cannot be read, because Kubernetes does not take the token of the pod's service account (401)")
	case http.StatusForbidden:
		return errors.New("may not be read (403): let the pod's service account get nodes")
	case http.StatusNotFound:
		return errors.New("does not exist (404): --node-name must be the node's name in Kubernetes")
	}
	return fmt.Errorf("cannot be read, because Kubernetes answers with status %d", code)
}

// parseNode reads what is used of a Node object.
func parseNode(text io.Reader) (backends.NodeInfo, error) {
	const most = 16 << 20 // bytes; an object in Kubernetes has less than 2 MB
	var node struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec struct {
			ProviderID string `json:"providerID"`
		} `json:"spec"`
	}
	if err := json.NewDecoder(io.LimitReader(text, most)).Decode(&node); err != nil {
		return backends.NodeInfo{}, fmt.Errorf("cannot be understood: %w", err)
	}
	if node.Kind != "Node" {
		return backends.NodeInfo{}, fmt.Errorf("cannot be read, because Kubernetes answers with a %q", node.Kind)
	}
	labels := node.Metadata.Labels
	return backends.NodeInfo{
		ProviderID: node.Spec.ProviderID,
		Type:       labels["node.kubernetes.io/instance-type"],
		Zone:       labels["topology.kubernetes.io/zone"],
		Region:     labels["topology.kubernetes.io/region"],
	}, nil
}
