package tests

import (
	"maps"
	"strings"
	"testing"
)

const (
	beingCreated     = "snapshot.storage.kubernetes.io/volumesnapshot-being-created"
	groupInProgress  = "groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-being-created"
	beingDeleted     = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted"
	contentBound     = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"
	groupBound       = "groupsnapshot.storage.kubernetes.io/volumegroupsnapshotcontent-bound-protection"
	restored         = "provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection"
	deletionSecret   = "snapshot.storage.kubernetes.io/deletion-secret-name"
	groupsSecret     = "groupsnapshot.storage.kubernetes.io/deletion-secret-namespace"
	snapshotContents = "volumesnapshotcontents"
	groupContents    = "volumegroupsnapshotcontents"
)

// snapshotOf returns a content of snapshots, with changed metadata, fields of the spec, and a status.
func snapshotOf(driver string, metadata, spec, status fields) fields {
	whole := map[string]any{"driver": driver, "deletionPolicy": "Delete", "source": map[string]any{"volumeHandle": "a"}}
	maps.Copy(whole, spec)
	about := map[string]any{"name": "x"}
	maps.Copy(about, metadata)
	all := fields{"metadata": about, "spec": whole}
	if status != nil {
		all["status"] = status
	}
	return all
}

// snapshots are the writes of contents and snapshots, and whether each is allowed. The allowed ones are those of
// csi-snapshotter 8.6.0 and csi-provisioner 6.3.0, according to their sources.
func snapshots(in install) map[string]allowance {
	driver := in.backend + ".csi.stowage.dev"
	rows := map[string]allowance{}
	row := func(name, resource, sub string, before, after fields, allowed bool) {
		rows[name] = allowance{change{in.user(), resource, sub, before, after}, allowed, allowed}
	}
	content := func(metadata, spec, status fields) fields { return snapshotOf(driver, metadata, spec, status) }
	annotated := func(pairs ...any) fields {
		all := map[string]any{}
		for _, name := range pairs {
			all[name.(string)] = "yes" // The callers pass texts.
		}
		return fields{"annotations": all}
	}
	deleting := func(finalizers ...any) fields {
		return fields{"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers}
	}
	plain := content(nil, nil, nil)
	ready := content(nil, nil, fields{"snapshotHandle": "a", "readyToUse": true})
	for resource, of := range map[string]struct{ mark, protection, handle string }{
		snapshotContents: {beingCreated, contentBound, "snapshotHandle"},
		groupContents:    {groupInProgress, groupBound, "volumeGroupSnapshotHandle"},
	} {
		row("begin, "+resource, resource, "", plain, content(annotated(of.mark), nil, nil), true)
		row("end, "+resource, resource, "", content(annotated(of.mark, beingDeleted), nil, nil),
			content(annotated(beingDeleted), nil, nil), true)
		row("fail, "+resource, resource, "status", plain, content(nil, nil, fields{"error": fields{"message": "a"}}), true)
		row("finish, "+resource, resource, "status", plain, content(nil, nil, fields{of.handle: "a"}), true)
		row("is ready, "+resource, resource, "status", content(nil, nil, fields{of.handle: "a"}),
			content(nil, nil, fields{of.handle: "a", "readyToUse": true}), true)
		row("is deleted, "+resource, resource, "status", content(deleting(of.protection), nil, fields{of.handle: "a"}),
			content(deleting(of.protection), nil, fields{}), true)
		unfinished := annotated(of.mark)
		maps.Copy(unfinished, deleting(of.protection))
		row("finish what is being deleted, "+resource, resource, "status", content(unfinished, nil, nil),
			content(unfinished, nil, fields{of.handle: "a"}), true)
		row("release, "+resource, resource, "", content(deleting("b", of.protection), nil, nil),
			content(deleting("b"), nil, nil), true)
		row("release what stays, "+resource, resource, "", content(fields{"finalizers": []any{of.protection}}, nil, nil),
			plain, false)
		row("release another's finalizer, "+resource, resource, "", content(deleting("b"), nil, nil),
			content(deleting(), nil, nil), false)
		row("forget a handle, "+resource, resource, "status", content(nil, nil, fields{of.handle: "a"}), plain, false)
		row("name another handle, "+resource, resource, "status", content(nil, nil, fields{of.handle: "a"}),
			content(nil, nil, fields{of.handle: "b"}), false)
		row("delete it with its class, "+resource, resource, "", content(nil, fields{"deletionPolicy": "Retain"}, nil), plain,
			false)
		row("name a source, "+resource, resource, "", plain,
			content(nil, fields{"source": fields{"snapshotHandle": "b"}}, nil), false)
		row("an annotation, "+resource, resource, "", plain, content(annotated(beingDeleted), nil, nil), false)
		row("remove an annotation, "+resource, resource, "", content(annotated(beingDeleted), nil, nil), plain, false)
		row("a label, "+resource, resource, "", plain, content(fields{"labels": fields{"a": "b"}}, nil, nil), false)
		row("make one with a secret, "+resource, resource, "", nil, content(annotated(deletionSecret), nil, nil), false)
		row("name a secret, "+resource, resource, "", plain, content(annotated(groupsSecret), nil, nil), false)
	}
	both := fields{"snapshotHandle": "a", "volumeGroupSnapshotHandle": "b"}
	row("a member is ready", snapshotContents, "status", content(nil, nil, both),
		content(nil, nil, fields{"snapshotHandle": "a", "volumeGroupSnapshotHandle": "b", "readyToUse": true}), true)
	members := []any{fields{"snapshotHandle": "a"}}
	row("a group is deleted, and keeps its list", groupContents, "status", content(deleting(groupBound), nil,
		fields{"volumeGroupSnapshotHandle": "a", "volumeSnapshotInfoList": members}),
		content(deleting(groupBound), nil, fields{"volumeSnapshotInfoList": members}), true)
	for version, allowed := range map[string]bool{"v1": true, "v1beta2": true, "v1beta1": false} {
		group := func(status fields) fields {
			all := content(nil, nil, status)
			all["apiVersion"] = "groupsnapshot.storage.k8s.io/" + version
			return all
		}
		row("a group's status in "+version, groupContents, "status", group(fields{}), group(fields{"readyToUse": true}),
			allowed)
	}
	row("name another snapshot of a group", groupContents, "status",
		content(nil, nil, fields{"volumeSnapshotInfoList": []any{fields{"snapshotHandle": "a"}}}),
		content(nil, nil, fields{"volumeSnapshotInfoList": []any{fields{"snapshotHandle": "b"}}}), false)
	rows["an administrator, with a secret"] = allowance{change{"admin", snapshotContents, "", plain,
		content(annotated(deletionSecret), nil, nil)}, false, false}
	rows["an administrator, another's with a secret"] = allowance{change{"admin", snapshotContents, "", nil,
		snapshotOf("other.example", annotated(deletionSecret), nil, nil)}, true, true}
	rows["an administrator, one that has a secret"] = allowance{change{"admin", snapshotContents, "",
		content(annotated(deletionSecret), nil, nil), content(annotated(deletionSecret, beingDeleted), nil, nil)}, true, true}
	rows["an administrator, another policy"] = allowance{change{"admin", snapshotContents, "", ready,
		content(nil, fields{"deletionPolicy": "Retain"}, nil)}, true, true}
	snapshot := func(metadata fields, source string) fields {
		about := map[string]any{"name": "x"}
		maps.Copy(about, metadata)
		return fields{"metadata": about, "spec": fields{"source": fields{"persistentVolumeClaimName": source}}}
	}
	protected := fields{"finalizers": []any{"a", restored}}
	row("protect a restore's source", "volumesnapshots", "", snapshot(fields{"finalizers": []any{"a"}}, "a"),
		snapshot(protected, "a"), true)
	row("protect it no more", "volumesnapshots", "", snapshot(fields{"finalizers": []any{restored}}, "a"),
		snapshot(nil, "a"), true)
	row("another finalizer", "volumesnapshots", "", snapshot(protected, "a"), snapshot(nil, "a"), false)
	row("another source", "volumesnapshots", "", snapshot(nil, "a"), snapshot(nil, "b"), false)
	row("a snapshot's annotation", "volumesnapshots", "", snapshot(nil, "a"), snapshot(annotated("a"), "a"), false)
	row("a snapshot's label", "volumesnapshots", "", snapshot(nil, "a"), snapshot(fields{"labels": fields{"a": "b"}}, "a"),
		false)
	return rows
}

// TestSnapshotsWrite checks that the account of a backend's sidecars writes of contents and snapshots only what the
// sidecars write, and that nobody has a content name a Secret.
func TestSnapshotsWrite(t *testing.T) {
	for _, in := range installs() {
		t.Run(in.name, func(t *testing.T) {
			for way, said := range map[string]func(change) string{
				"kustomize": verdicts(t, kustomized(t, in.folder)), "helm": verdicts(t, charted(t, in.values, in.schemaless)),
			} {
				for name, a := range snapshots(in) {
					refusal := said(a.change)
					if (refusal == "") != a.alone || refusal != "" && !strings.Contains(refusal, in.backend+".csi.stowage.dev") {
						t.Errorf("%s, %s: allowed is %t, want %t: %q", name, way, refusal == "", a.alone, refusal)
					}
				}
			}
		})
	}
}
