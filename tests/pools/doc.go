// Command pools times the binder on a control plane of its own: etcd, the API server, kube-controller-manager with its
// flags at their defaults, csi-provisioner, the driver with the backend "memory", and the manager. There is no node and
// no kubelet: claims bind, and nothing is mounted. It needs no root:
//
//	go run ./tests/pools -claims 200
//
// It makes so many claims at once, that are provisioned; that find a set full and Kubernetes binds; and that the
// manager binds. It prints how long they took, and from the API server's audit log the requests for each claim by who
// made them.
//
//	go run ./tests/pools -recycle 100
//
// has so many released volumes recycled, with the rights of the recycler's manifests and in its namespace, while the
// leader of two is killed again and again. What a kubelet would say of scrub pods is written for it.
//
//	go run ./tests/pools -volumes 10000
//
// times a change of one of 50 sets that have so many volumes together.
//
// With -nodes it simulates found disks instead: the master as a process, and a real worker for each node in this one,
// over disks that are nowhere. There are neither kube-controller-manager nor kubelets: the command itself releases
// volumes as Kubernetes would.
//
//	go run ./tests/pools -nodes 500 -disks 20
//
// It prints how long it takes until all disks are offered, and then until one in a hundred that was released is wiped
// and offered again, with the master's requests for each volume, its memory and its time on the processor.
//
// The programs are those of tests/e2e/cluster, from its cache; the first run builds them. All addresses are of the
// loopback, at ports that were free, and all files are in one folder, which goes at the end. Numbers of two machines,
// or of two moments on a shared one, cannot be compared; the ratios of one run can.
package main
