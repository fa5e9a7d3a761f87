// Package moto runs moto_server, an EC2 that others wrote, as a second opinion on the ebs backend: whatever our own
// strict API (package ec2) gets wrong in our favour, moto has no reason to.
//
// It comes from Debian's packages, in a root filesystem of its own that is made once and kept outside the tree. It is
// no judge of the rules of EC2, many of which it does not keep: what its tests leave out is in a table that they print,
// and an entry of which moto has become worthy fails them.
//
// Command bench measures the driver against it.
package moto
