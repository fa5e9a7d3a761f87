// Command node-driver-registrar replaces the CSI sidecar of that name in this cluster (see package standins). It
// registers the CSI driver at --csi-address with the kubelet, through the kubelet's plugin registration API.
package main
