// Package imds is the metadata service of an EC2 instance, for tests: the second version of it, as strict as EC2's,
// with the ways in which it is out of reach for a pod.
package imds
