// Command pools measures the binder on its own control plane: etcd, the API server, kube-controller-manager with
// default flags, csi-provisioner, the driver with the backend "memory", and the manager. There is no node and no
// kubelet: claims are bound, and nothing is mounted. It needs no root:
//
//	go run ./tests/pools -claims 200
//
// It creates the given number of claims at once: first dynamic ones, then claims that find a filled set and are bound
// by Kubernetes, then such claims that the manager binds. It prints the durations and, from the API server's audit log,
// the requests for each claim by program.
//
//	go run ./tests/pools -recycle 100
//
// recycles the given number of released volumes, with the rights of the recycler's manifests and in its namespace,
// while the leader of two recyclers is killed again and again. The command simulates the kubelet's updates of scrub
// pods.
//
//	go run ./tests/pools -volumes 10000
//
// measures a change of one of 50 sets that have the given number of volumes in total.
//
// With -nodes it simulates found disks instead: the master in a process, and a real worker for each node in this
// process, with simulated disks. There are neither kube-controller-manager nor kubelets: the command itself releases
// volumes as Kubernetes would.
//
//	go run ./tests/pools -nodes 500 -disks 20
//
// It prints the time until all disks are offered, and then until one in a hundred that was released is wiped and
// offered again, with the master's requests for each volume, its memory and its CPU time.
//
// The programs are those of tests/e2e/cluster, from its cache; the first run builds them. All addresses are loopback
// addresses, on unused ports, and all files are in one folder, which is removed at the end. Numbers from two machines,
// or from two moments on a shared one, are not comparable; the ratios within a run are.
package main
