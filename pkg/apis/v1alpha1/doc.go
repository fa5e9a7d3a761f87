// Package v1alpha1 holds the resources of Stowage's own API group, stowage.dev.
//
// The custom resource definitions in deploy/kubernetes/crds are generated from these types (make generate), validation
// rules included: the API server refuses an object that a controller could not serve, with a sentence.
//
// +kubebuilder:object:generate=true
// +groupName=stowage.dev
//
// controller-gen reads the two lines above.
package v1alpha1
