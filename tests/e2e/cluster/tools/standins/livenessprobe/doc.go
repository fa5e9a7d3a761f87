// Command livenessprobe stands in for the CSI sidecar of that name in this cluster (package standins says why): it
// answers GET /healthz with what the CSI driver at --csi-address answers to Probe.
package main
