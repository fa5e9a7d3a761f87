// Package image makes what the guest boots: a Debian kernel and a disk with the programs that tests need, from the
// packages that this machine's apt-get finds. Nothing is installed: packages are downloaded, unpacked into a folder and
// made a filesystem. The result is kept outside the tree under a hash of the packages' names and versions, and
// of this package.
package image
