// Package ebs tests the backend for Amazon EBS volumes as a whole: what becomes of volumes when requests meet faults.
package ebs
