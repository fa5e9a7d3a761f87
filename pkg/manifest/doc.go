// Package manifest is the form in which a driver says, in the manifest of GetPluginInfo, what no capability of CSI
// has a word for.
//
// ListVolumes may name volumes of others: of clusters that use the same storage, or of one that a disk was in before.
// Who wants to delete what nothing in his own cluster names has to know that the list is of this cluster alone.
// package driver says it, csiclient hears it, and others take a driver that says nothing for one that lists the
// volumes of others.
package manifest
