// Command cluster brings up a real Kubernetes on one machine, built from Go modules, for the tests in tests/e2e and for
// trying things out: `make cluster-up` and `make cluster-down`. Nothing of it is outside namespaces of its own but
// files in one folder, control groups below one name and one port of the loopback address.
//
//	cluster up [-data FOLDER] [-nodes N]      bring it up, or make sure that it is
//	cluster down [-data FOLDER]               take it down, also what is left of one that died
//	cluster status [-data FOLDER]             say whether it is up, and how it is used
//	cluster build [-programs | -e2e-suite]    only build what up needs, all programs, or what the official tests need
//	cluster load [-data FOLDER] ARCHIVE...    give all nodes the images in the archives
//	cluster enter [-data FOLDER] NODE CMD...  run a command on a node
//
// # How it is made
//
// One process holds the cluster (package controlplane): the first one of its own mount, network, process, host name and
// IPC namespaces. In them run etcd and the control plane, and one such process for each node (package node), in
// namespaces inside these: containerd, the kubelet and kube-proxy on a root filesystem of the node's own. When the
// outer process ends, however it does, the kernel takes everything down. The host reaches the API server through a
// listener on its loopback address that was handed to that process.
//
// # What differs from a usual cluster
//
//   - There is no registry: images are made here (package images), and the two sidecars whose sources are not to be had
//     as modules have stand-ins (tools/standins).
//   - There is no name service for Services: storage needs none.
//   - etcd does not wait for the disk, and all data are gone with the cluster.
//   - The nodes share the machine's kernel: its loop devices and its clock are everybody's.
//   - Settings of the whole machine (vm.overcommit_memory, connection tracking) are left as they are.
package main
