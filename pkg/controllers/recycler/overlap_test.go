package recycler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// on restricts a source to nodes that have one of some values of a label.
func on(source corev1.PersistentVolumeSource, label string, values ...string) corev1.PersistentVolumeSpec {
	term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: label, Operator: corev1.NodeSelectorOpIn, Values: values},
	}}
	return corev1.PersistentVolumeSpec{PersistentVolumeSource: source, NodeAffinity: &corev1.VolumeNodeAffinity{
		Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}},
	}}
}

// orOn adds another way to satisfy an affinity.
func orOn(v corev1.PersistentVolumeSpec, label, value string) corev1.PersistentVolumeSpec {
	more := on(corev1.PersistentVolumeSource{}, label, value).NodeAffinity.Required.NodeSelectorTerms
	v.NodeAffinity.Required.NodeSelectorTerms = append(v.NodeAffinity.Required.NodeSelectorTerms, more...)
	return v
}

// named is like on, but restricts by the names of nodes.
func named(source corev1.PersistentVolumeSource, node string) corev1.PersistentVolumeSpec {
	v := on(source, "metadata.name", node)
	term := &v.NodeAffinity.Required.NodeSelectorTerms[0]
	term.MatchFields, term.MatchExpressions = term.MatchExpressions, nil
	return v
}

func hostPath(path string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}
}

func local(path string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}}
}

func share(server, path string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: server, Path: path}}
}

func handle(driver, id string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: id}}
}

func csiShare(path, directory string) corev1.PersistentVolumeSource {
	v := handle("nfs.example.org", path+directory)
	v.CSI.VolumeAttributes = map[string]string{"server": "s", "share": path, "subDir": directory}
	return v
}

func fc(lun int32, readOnly bool) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{TargetWWNs: []string{"5"}, Lun: &lun,
		ReadOnly: readOnly}}
}

func iscsi(portal string, lun int32) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: portal, IQN: "iqn",
		Lun: lun}}
}

func flex(disk string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: "flex",
		Options: map[string]string{"disk": disk}}}
}

// anywhere returns a volume without an affinity.
func anywhere(source corev1.PersistentVolumeSource) corev1.PersistentVolumeSpec {
	return corev1.PersistentVolumeSpec{PersistentVolumeSource: source}
}

// TestOverlap checks that two volumes count as two storages only if that is certain.
func TestOverlap(t *testing.T) {
	const host = corev1.LabelHostname
	type pair struct {
		a, b corev1.PersistentVolumeSpec
		want bool
	}
	both := func(a, b corev1.PersistentVolumeSource, want bool) pair { return pair{anywhere(a), anywhere(b), want} }
	onOne := func(a, b string, want bool) pair { return pair{on(local(a), host, "a"), on(local(b), host, "a"), want} }
	for name, c := range map[string]pair{
		"the same handle":                 both(handle("d", "1"), handle("d", "1"), true),
		"another handle":                  both(handle("d", "1"), handle("d", "2"), false),
		"a handle of another driver":      both(handle("d", "1"), handle("e", "1"), false),
		"a handle and a path":             both(handle("d", "1"), local("/mnt"), false),
		"the same export":                 both(share("s", "/a/b"), share("s", "/a/b/"), true),
		"an export inside":                both(share("s", "/a"), share("s", "/a/b"), true),
		"an export around":                both(share("s", "/a/b"), share("s", "/"), true),
		"a neighbour":                     both(share("s", "/a"), share("s", "/ab"), false),
		"an export spelled otherwise":     both(share("s", "/a/b"), share("S", "/a//./b"), true),
		"an export of another server":     both(share("s", "/a"), share("t", "/a"), false),
		"a CSI volume of the export":      both(csiShare("/a", "b"), share("s", "/a/b"), true),
		"an export around a CSI volume":   both(csiShare("/a", "b"), share("S.", "/a"), true),
		"two static CSI volumes":          both(csiShare("/a", ""), csiShare("/a/", ""), true),
		"a CSI volume around another":     both(csiShare("/a", ""), csiShare("/a", "b"), true),
		"two CSI volumes of a share":      both(csiShare("/a", "b"), csiShare("/a", "c"), false),
		"an export beside a CSI volume":   both(csiShare("/a", "b"), share("s", "/a/c"), false),
		"a disk and its partition":        onOne("/dev/sdb", "/dev/sdb1", true),
		"a disk and its partition, by ID": onOne("/dev/disk/by-id/a-1", "/dev/disk/by-id/a-1-part2", true),
		"two logical volumes":             onOne("/dev/vg/data", "/dev/vg/data2", false),
		"two disks by ID":                 onOne("/dev/disk/by-id/a-1", "/dev/disk/by-id/a-12", false),
		"two partitions":                  onOne("/dev/sdb1", "/dev/sdb12", false),
		"a namespace and its partition":   onOne("/dev/nvme0n1", "/dev/nvme0n1p2", true),
		"another disk of the node":        onOne("/dev/sdb", "/dev/sdbc", false),
		"a directory with a number":       onOne("/mnt/a", "/mnt/a1", false),
		"the same disk":                   onOne("/mnt", "/mnt", true),
		"the same path on another node":   {on(local("/mnt"), host, "a"), on(local("/mnt"), host, "b"), false},
		"the same path, by name":          {named(local("/mnt"), "a"), named(local("/mnt"), "b"), false},
		"affinities of different labels":  {on(local("/mnt"), host, "a"), on(local("/mnt"), "zone", "b"), true},
		"affinities of a label and field": {on(local("/mnt"), host, "a"), named(local("/mnt"), "b"), true},
		"affinities that share a node":    {on(local("/mnt"), host, "a", "b"), on(local("/mnt"), host, "b", "c"), true},
		"an affinity with an alternative": {on(local("/mnt"), host, "a"),
			orOn(on(local("/mnt"), host, "b"), host, "a"), true},
		"no affinity":                    {on(local("/mnt"), host, "a"), anywhere(local("/mnt")), true},
		"a path below, other affinities": {on(local("/mnt"), host, "a"), on(local("/mnt/x"), "zone", "b"), true},
		"another path of the node":       onOne("/mnt/a", "/mnt/b", false),
		"a path of the host":             {on(local("/mnt"), host, "a"), anywhere(hostPath("/mnt/b")), true},
		"two paths of the host":          both(hostPath("/mnt"), hostPath("/mnt/"), true),
		"a disk, read-only":              both(fc(1, false), fc(1, true), true),
		"another disk":                   both(fc(1, false), fc(2, false), false),
		"a target by another portal":     both(iscsi("p", 1), iscsi("q", 1), true),
		"another unit of a target":       both(iscsi("p", 1), iscsi("p", 2), false),
		"other options of a plugin":      both(flex("1"), flex("2"), false),
		"a disk and a share":             both(fc(1, false), share("s", "/a"), false),
	} {
		t.Run(name, func(t *testing.T) {
			if one, other := overlap(&c.a, &c.b), overlap(&c.b, &c.a); one != c.want || other != c.want {
				t.Errorf("overlap = %t, the other way round %t, want %t", one, other, c.want)
			}
		})
	}
}
