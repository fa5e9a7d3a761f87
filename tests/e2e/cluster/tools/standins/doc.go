// Package standins documents the two programs in its folders. The sources of node-driver-registrar and livenessprobe,
// which every CSI driver is deployed with, are not available as Go modules everywhere. In this cluster only, which is
// built without a container registry, these programs replace them under the names of the upstream images. They accept
// the flags that deployments set, and behave towards the kubelet like the originals. Everywhere else the upstream
// images run.
package standins
