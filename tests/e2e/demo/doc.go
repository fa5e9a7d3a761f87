// Command demo shows, on a machine with nothing on it, a pod's data in a volume that Stowage provisioned: it brings up
// a Kubernetes, deploys the driver as a user does, makes a claim and a pod, deletes the pod, and reads the data back by
// another one. Run again, it goes on where it is: `make cluster-demo`.
package main
