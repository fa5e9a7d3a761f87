package node

import (
	"context"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/ownership"
)

// awaitWork waits for a walk over the files that an earlier call began. Until it has ended, no other group gets the
// files.
func (p *publishing) awaitWork(ctx context.Context) error {
	return p.service.works.Wait(ctx, p.request.Volume)
}

// forgetWork drops the outcome of a walk that no phase asked for. It says nothing about files that the pod will create.
func (p *publishing) forgetWork(ctx context.Context) error {
	return p.service.works.Stop(ctx, p.request.Volume)
}

// own gives the files to the pod's group if the volume was staged for another group, as when two pods use it one after
// the other. While a pod of the files' group has the volume, the files stay with that group.
func (p *publishing) own(ctx context.Context) error {
	asked, staged := p.group(), *p.record.Staged
	if asked == "" || asked == staged.Group {
		return nil
	}
	record, live := p.service.livePublications(ctx, p.record)
	if err := p.checkGroup(asked, staged.Group, live); err != nil {
		return err
	}
	p.record = record
	if err := p.putGroup(""); err != nil { // the state that an interrupted walk leaves
		return err
	}
	err := p.service.giveFiles(ctx, p.request.Volume, asked, ownership.Request{
		Path: staged.Path, Exclusive: staged.Source.Kind == ledger.Device && len(live) == 0,
	})
	if err != nil {
		return err
	}
	return p.putGroup(asked)
}

// group returns the group that the files must belong to; empty for any. As with the kubelet, a reader needs none.
func (p *publishing) group() string {
	if !p.service.ownGroups || p.request.Use.Type != backends.Mount || p.want.ReadOnly {
		return ""
	}
	return p.request.MountGroup
}

// checkGroup refuses a group while the files belong to another group, whose pod may use them.
func (p *publishing) checkGroup(asked, has string, live []string) error {
	switch {
	case has == "" || len(live) == 0:
		return nil
	case p.done:
		return backends.Errorf(backends.Exists,
			"it is published at %s already, with files of group %s, and asked for with group %s: unpublish it first",
			p.want.Target, has, asked)
	}
	return backends.Errorf(backends.InUse,
		"it is published at %s, its files belong to group %s, and group %s is asked for: "+
			"give the pods the same fsGroup, or stop those that use the volume", strings.Join(live, ", "), has, asked)
}

// putGroup records the group that the files belong to; empty if unknown.
func (p *publishing) putGroup(group string) error {
	staged := *p.record.Staged
	if staged.Group == group {
		return nil
	}
	staged.Group = group
	record := p.record.WithStaging(&staged)
	if err := p.service.ledger.Put(record); err != nil {
		return err
	}
	p.record = record
	return nil
}
