// Package sample is the smallest backend that keeps its volumes: directories of one disk, for pods of one node. It
// exists to be copied. Package all does not list it, so that no binary has it; the tests run it like every other.
//
// The directory of a volume has the volume's handle as its name. The file beside it begins with the handle, too:
//
//   - .json is the record of a volume that exists. Its mode notes whether the volume is in use on the node.
//   - .part is the same file while the volume is created or removed. Open removes what such a file stands for.
//
// So each change has one instant, a rename or a new mode, and a crash leaves all or nothing.
//
// To write a backend, copy this folder, replace the calls of the file system by calls of the storage, and add the
// optional interfaces that the storage can honour. Package memory has an example of nearly all of them. The habits that
// are worth keeping are in the comments. Larger storage needs more: this backend does not enforce the sizes of volumes,
// and does not count its room.
package sample
