// Package bundle puts into one archive what a maintainer asks for: the objects that have to do with volumes, their
// events, the logs of Stowage's pods, and what the doctor makes of it.
//
// An archive leaves the cluster, so that what may be a secret stays behind. Secrets and ConfigMaps are never asked for.
// Of what is asked for, clean.go leaves out whole fields in which people keep secrets (environment, commands, foreign
// annotations), and hides values whose name speaks of one (package secret) where names are free: parameters of classes,
// attributes of volumes, mount options. Logs and messages of events lose what follows such a name.
//
// What cannot be read is named in notes.txt, and all else is there.
package bundle
