// Package placeholder knows the placeholders in a parameter's value that are filled in when a volume is created, such
// as {{ .PVCName }}.
//
// Backends fill them in. Controllers that create volumes before there is a claim refuse those that name one. No other
// package knows the placeholders.
package placeholder
