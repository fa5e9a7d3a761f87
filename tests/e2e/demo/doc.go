// Command demo shows, on an empty machine, a pod's data in a volume that Stowage provisioned. It brings up a
// Kubernetes, deploys the driver as a user does, creates a claim and a pod, deletes the pod, and reads the data back
// from another pod. A second run continues with the existing cluster: `make cluster-demo`.
package main
