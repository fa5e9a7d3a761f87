// Package manifest defines the entry in the manifest of GetPluginInfo with which a driver declares a feature that has
// no CSI capability.
//
// ListVolumes may include volumes of other clusters: clusters that use the same storage, or a cluster that a disk was
// in before. A caller that deletes volumes without an object in its own cluster must know that the list only has
// volumes of this cluster. Package driver writes the entry, and csiclient reads it. A driver without the entry is
// assumed to list volumes of other clusters, too.
package manifest
