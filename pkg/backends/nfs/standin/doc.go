// Package standin replaces the exports of NFS servers by directories of this machine, for tests on kernels without NFS.
//
// Only tests reach it, and no flag or configuration does: a volume that seems to be on a server but is not would be
// lost with its node.
package standin
