package layout

import "fmt"

// The cluster's networks are in its own namespaces: they cannot collide with the machine's.
const (
	// ControlPlane is the address of the API server on the network of the nodes.
	ControlPlane = "10.213.0.1"
	// Prefix is the length of the nodes' network prefix, in bits.
	Prefix = 24
	// Services is the range of the addresses of Services.
	Services = "10.96.0.0/16"
	// APIService is the address of the Service kubernetes, the first address of Services.
	APIService = "10.96.0.1"
	// Pods is the range of the addresses of all pods.
	Pods = "10.244.0.0/16"
	// APIPort is the port of the API server.
	APIPort = 6443
	// MaxNodes is the maximum number of a cluster's nodes.
	MaxNodes = 9
)

// NodeName returns the name of the node with the number, from 1.
func NodeName(number int) string { return fmt.Sprintf("node-%d", number) }

// NodeAddress returns the address of the node with the number, from 1.
func NodeAddress(number int) string { return fmt.Sprintf("10.213.0.%d", 10+number) }

// Cable returns the name of the control plane's interface to a node.
func Cable(name string) string { return "to-" + name }

// PodRange returns the address range of the node's pods.
func PodRange(number int) string { return fmt.Sprintf("10.244.%d.0/24", number) }
