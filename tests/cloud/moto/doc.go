// Package moto runs moto_server, an EC2 by other authors, as a second opinion on the ebs backend: an error of the
// project's own strict API (package ec2) in the backend's favour is unlikely to be in moto too.
//
// Moto comes from Debian's packages, in its own root filesystem that is built once and kept outside the tree. It does
// not define the rules of EC2, many of which it does not enforce. The tests print a table of the scenarios that they
// therefore exclude. They fail if moto passes an excluded scenario.
//
// Command bench measures the driver against it.
package moto
