// Package imds is the metadata service of an EC2 instance, for tests: its second version, as strict as EC2's, with the
// reasons for which a pod cannot reach it.
package imds
