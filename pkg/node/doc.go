// Package node is what happens to volumes on a node: staging, publishing and their undoing, growing,
// measuring and looking after them, for every backend alike.
//
// A backend says where a volume's data is and no more. Here a device is proven, probed, checked,
// formatted if it is blank, grown, mounted and given to its group; a directory is bound, an export
// mounted. The order of these phases is in stage.go and publish.go, and each phase is a method of its own.
// The mechanisms are in the packages below: device, filesystem, mount, ownership, stats. What is known
// about a volume between calls is in package ledger, and never believed before the kernel was asked.
//
// Each call may have been made before, may have been cut short at any point by a kill, and may come in any
// order. So each looks at what is there first: what is right is kept, what is half-made is taken up or
// taken down, and what is somebody else's is left alone and named in the error.
//
// Callers hold one lock per volume. Calls for different volumes run side by side and share nothing but
// the ledger's memory.
package node
