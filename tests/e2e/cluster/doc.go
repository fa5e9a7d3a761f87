// Command cluster brings up a real Kubernetes on one machine, built from Go modules, for the tests in tests/e2e and for
// experiments: `make cluster-up` and `make cluster-down`. Outside its own namespaces, it has only files in one folder,
// control groups below one name, and one port of the loopback address.
//
//	cluster up [-data FOLDER] [-nodes N]      bring it up, or make sure that it is
//	cluster down [-data FOLDER]               take it down, also what is left of one that died
//	cluster status [-data FOLDER]             say whether it is up, and how it is used
//	cluster build [-programs | -e2e-suite]    only build what up needs, all programs, or what the official tests need
//	cluster load [-data FOLDER] ARCHIVE...    give all nodes the images in the archives
//	cluster enter [-data FOLDER] NODE CMD...  run a command on a node
//
// # Design
//
// One process holds the cluster (package controlplane): process 1 of its own mount, network, PID, UTS and IPC
// namespaces. It runs etcd, the control plane, and one similar process for each node (package node), in inner
// namespaces. A node runs containerd, the kubelet and kube-proxy on its own root filesystem. When the outer process
// ends for any reason, the kernel ends everything. The host reaches the API server through a listener on its loopback
// address, which that process inherits.
//
// # Differences from a usual cluster
//
//   - There is no registry: images are built here (package images). Two sidecars whose sources are not available as
//     modules have stand-ins (tools/standins).
//   - There is no name service for Services: storage needs none.
//   - etcd does not wait for the disk, and all data is deleted with the cluster.
//   - The nodes share the machine's kernel, including its loop devices and its clock.
//   - Settings of the whole machine (vm.overcommit_memory, connection tracking) are not changed.
package main
