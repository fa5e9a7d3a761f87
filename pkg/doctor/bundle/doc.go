// Package bundle collects the data for a report to the maintainers in one archive: the objects that are related to
// volumes, their events, the logs of Stowage's pods, and the doctor's findings.
//
// An archive leaves the cluster, so possible secrets must stay out of it. Secrets and ConfigMaps are never read.
// clean.go removes whole fields in which people keep secrets (environment, commands, foreign annotations). Where names
// are free, it hides the values whose names suggest a secret (package secret): parameters of classes, attributes of
// volumes, mount options. In logs and messages of events, it hides the text after such a name.
//
// If something cannot be read, notes.txt names it, and the rest is complete.
package bundle
