// Package image builds the guest's kernel and disk: a Debian kernel and a filesystem with the programs that tests need,
// from the packages that this machine's apt-get finds. Nothing is installed: packages are downloaded and unpacked into
// a folder, which becomes the filesystem. The result is kept outside the tree, under a hash of the packages' names and
// versions and of this package.
package image
