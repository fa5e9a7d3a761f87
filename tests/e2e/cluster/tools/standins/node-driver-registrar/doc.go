// Command node-driver-registrar stands in for the CSI sidecar of that name in this cluster (package standins says
// why): it tells the kubelet, by its plugin registration API, of the CSI driver at --csi-address.
package main
