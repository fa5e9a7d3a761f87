// Package tests renders the content of deploy/ with the libraries of kustomize and Helm, and checks it: both ways to
// install give the same objects; these are the golden ones; every field exists in its type; each right has a documented
// reason; and the security contexts are as restrictive as documented.
//
// It is a separate module, so that the driver's module does not depend on renderers.
package tests
