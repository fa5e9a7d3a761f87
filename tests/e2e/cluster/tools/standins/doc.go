// Package standins explains the two programs in its folders. The sources of node-driver-registrar and
// livenessprobe, which every CSI driver is deployed with, are not to be had as Go modules everywhere. Where this
// cluster is built without a container registry, the programs here take their place, under the names of the
// upstream images, in this cluster only: they take the flags that deployments give and do what the kubelet sees of the
// originals. Everywhere else the upstream images run.
package standins
