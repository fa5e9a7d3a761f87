// Package all lists the backends that the stowage binary has. It exists so that adding a backend is one
// line in one place and nothing registers itself.
package all
