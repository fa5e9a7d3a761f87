// Command livenessprobe replaces the CSI sidecar of that name in this cluster (see package standins). It answers GET
// /healthz with the result of Probe of the CSI driver at --csi-address.
package main
