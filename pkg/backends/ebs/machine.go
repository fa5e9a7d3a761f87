package ebs

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Machine returns what EC2 reports about a node's instance. EC2 forgets a terminated instance after about an hour.
// NotFound proves nothing, since another account or region, or a read that lags, gives the same answer.
func (b *backend) Machine(ctx context.Context, query backends.MachineQuery) (_ backends.Machine, err error) {
	defer annotate(&err, "state of", query.Node)
	if err := sameInstance(query); err != nil {
		return backends.Machine{}, err
	}
	instance, err := b.instances.Do(ctx, query.Node)
	if err != nil {
		return backends.Machine{}, err
	}
	m := backends.Machine{State: machineState(instance.State), Began: aws.ToTime(instance.LaunchTime)}
	m.Says = describeInstance(query.Node, instance)
	if m.State == backends.MachineStopped && hibernates(instance) {
		m.State = "" // Nothing writes, but its memory holds what it will write.
		m.Says += ": it may hibernate, and go on where it was once it is started. Terminate it, or start and stop it"
	}
	return m, nil
}

// sameInstance fails if a query names no instance, or two.
func sameInstance(query backends.MachineQuery) error {
	if !isID("i", query.Node) {
		return backends.Errorf(backends.Invalid, "%q is no EC2 instance, such as i-0123456789abcdef0", query.Node)
	}
	if query.ProviderID == "" {
		return nil
	}
	other, err := ofProviderID(query.ProviderID)
	if err != nil {
		return backends.Errorf(backends.Invalid, "the Node %w", err)
	}
	if other.ID != query.Node {
		return backends.Errorf(backends.Invalid,
			"the node has registered as instance %q, and its providerID %q is of instance %q: which of them it is, is not known",
			query.Node, query.ProviderID, other.ID)
	}
	return nil
}

// machineState maps EC2's state. Only EC2's two states of an instance that is off count as off.
func machineState(state *types.InstanceState) backends.MachineState {
	if state == nil {
		return ""
	}
	switch state.Name {
	case types.InstanceStateNamePending, types.InstanceStateNameRunning:
		return backends.MachineRunning
	case types.InstanceStateNameStopping, types.InstanceStateNameShuttingDown:
		return backends.MachineStopping
	case types.InstanceStateNameStopped:
		return backends.MachineStopped
	case types.InstanceStateNameTerminated:
		return backends.MachineTerminated
	}
	return ""
}

// hibernates reports whether a stopped instance may keep the content of its memory. EC2 gives a special reason if a
// person requested that, but not if it interrupts a Spot instance that is set up for it.
func hibernates(i types.Instance) bool {
	code := ""
	if i.StateReason != nil {
		code = aws.ToString(i.StateReason.Code)
	}
	if i.HibernationOptions != nil && aws.ToBool(i.HibernationOptions.Configured) {
		return code != "Client.UserInitiatedShutdown" && code != "Client.InstanceInitiatedShutdown"
	}
	return code == "Client.UserInitiatedHibernate"
}

func describeInstance(id string, i types.Instance) string {
	state := "unknown"
	if i.State != nil {
		state = string(i.State.Name)
	}
	says := fmt.Sprintf("EC2 says that instance %s is %s", id, state)
	if i.StateReason != nil {
		says += fmt.Sprintf(" (%s)", aws.ToString(i.StateReason.Code))
	}
	if i.LaunchTime != nil {
		says += ", launched " + i.LaunchTime.UTC().Format(time.RFC3339)
	}
	return says
}
