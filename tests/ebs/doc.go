// Package ebs tests the whole backend for Amazon EBS volumes while requests meet faults.
package ebs
