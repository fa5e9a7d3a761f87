// Package apiserver asks a cluster's API server the few things that bringing a cluster up must know, from whichever
// network it is asked.
package apiserver
