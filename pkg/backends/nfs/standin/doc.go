// Package standin lets directories of this machine stand for what NFS servers export, for tests on kernels without NFS.
//
// It is reached by tests only: no flag and no configuration leads here, since a volume that looks as if it was on a
// server and is not would be lost with its node.
package standin
