// Package tests renders what is in deploy/ with the libraries of kustomize and Helm, and checks it: that both ways to
// install give the same objects, that these are the golden ones, that every field is one that its type has, that each
// right is one that somebody gave a reason for, and that the security contexts are as tight as they are said to be.
//
// It is a module of its own, so that the driver's does not depend on renderers.
package tests
