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

// node returns a reader of Kubernetes' object for this node, for a backend that must find out which of the cloud's
// machines this is.
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
			node, err := o.readNode(ctx)
			return nodeInfo(node), err
		},
	}
}

// readNode reads the object of this node.
func (o *options) readNode(ctx context.Context) (object, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return object{}, fmt.Errorf("was not asked for, since this is no pod that may ask Kubernetes: %w", err)
	}
	return readObject(ctx, config, "Node", "nodes", o.nodeName)
}

// contained reports whether this process runs in a pod, beside pods that use the volumes: the kubelet tells every
// container the address of the API. In the host's own mount namespace, for example after nsenter, it counts as outside.
func contained() bool { return os.Getenv("KUBERNETES_SERVICE_HOST") != "" && !mount.OnHost() }

// cluster returns a function that finds the cluster's ID in Kubernetes: the UID of the namespace kube-system, which is
// created with the cluster and cannot be deleted.
func (o *options) cluster() func(context.Context) (string, error) {
	if o.role == onlyNode {
		return nil
	}
	return func(ctx context.Context) (string, error) {
		config, err := rest.InClusterConfig()
		if err != nil {
			return "", fmt.Errorf(
				"the namespace kube-system was not asked for, since this is no pod that may ask Kubernetes: %w", err)
		}
		id, err := clusterID(ctx, config)
		if err != nil {
			return "", fmt.Errorf("the namespace kube-system %w", err)
		}
		return id, nil
	}
}

func clusterID(ctx context.Context, config *rest.Config) (string, error) {
	o, err := readObject(ctx, config, "Namespace", "namespaces", "kube-system")
	if err == nil && o.Metadata.UID == "" {
		err = errors.New("has no UID")
	}
	return o.Metadata.UID, err
}

// nodeInfo returns the fields of a Node object that a backend may use.
func nodeInfo(node object) backends.NodeInfo {
	labels := node.Metadata.Labels
	return backends.NodeInfo{
		ProviderID: node.Spec.ProviderID,
		Type:       labels["node.kubernetes.io/instance-type"],
		Zone:       labels["topology.kubernetes.io/zone"],
		Region:     labels["topology.kubernetes.io/region"],
	}
}

// object has the fields of a Kubernetes object that the driver uses.
type object struct {
	Metadata struct {
		UID               string            `json:"uid"`
		Labels            map[string]string `json:"labels"`
		DeletionTimestamp string            `json:"deletionTimestamp"`
	} `json:"metadata"`
	// Of a Node.
	Spec struct {
		ProviderID    string `json:"providerID"`
		Unschedulable bool   `json:"unschedulable"`
		Taints        []struct {
			Key string `json:"key"`
		} `json:"taints"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
		VolumesInUse    []string `json:"volumesInUse"`
		VolumesAttached []struct {
			Name string `json:"name"`
		} `json:"volumesAttached"`
	} `json:"status"`
}

// readObject reads an object. It uses only the transport of client-go: the typed client would make the binary half as
// large again for two requests.
func readObject(ctx context.Context, config *rest.Config, kind, resource, name string) (o object, err error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return o, fmt.Errorf("cannot be asked for: %w", err)
	}
	defer client.CloseIdleConnections()
	address, err := url.JoinPath(config.Host, "api/v1", resource, url.PathEscape(name))
	if err != nil {
		return o, fmt.Errorf("cannot be asked for: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return o, fmt.Errorf("cannot be asked for: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return o, unreachable{fmt.Errorf("cannot be read, because Kubernetes is out of reach: %w", err)}
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode != http.StatusOK {
		return o, refusal(answer.StatusCode, resource)
	}
	return parseObject(answer.Body, kind)
}

// refusal returns the error for a status of Kubernetes' answer.
func refusal(code int, resource string) error {
	switch code {
	case http.StatusUnauthorized:
		return errors.New("cannot be read, because Kubernetes does not take the token of the pod's service account (401)")
	case http.StatusForbidden:
		return fmt.Errorf("may not be read (403): let the pod's service account get %s", resource)
	case http.StatusNotFound:
		return errors.New("does not exist (404): give the name that it has in Kubernetes")
	}
	err := fmt.Errorf("cannot be read, because Kubernetes answers with status %d", code)
	if code == http.StatusTooManyRequests || code >= http.StatusInternalServerError {
		return unreachable{err}
	}
	return err
}

// unreachable is an error after which a retry may help.
type unreachable struct{ error }

func (u unreachable) Unwrap() error { return u.error }

func parseObject(text io.Reader, kind string) (o object, err error) {
	const most = 16 << 20 // bytes; an object in Kubernetes has less than 2 MB
	data, err := io.ReadAll(io.LimitReader(text, most))
	if err != nil {
		return o, unreachable{fmt.Errorf("cannot be read to its end: %w", err)}
	}
	var is struct { // Objects of other kinds have other fields with the same names.
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(data, &is); err != nil {
		return o, fmt.Errorf("cannot be understood: %w", err)
	}
	if is.Kind != kind {
		return o, fmt.Errorf("cannot be read, because Kubernetes answers with a %q", is.Kind)
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return o, fmt.Errorf("cannot be understood: %w", err)
	}
	return o, nil
}
