package ebs

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// A stopped instance that is set up to hibernate counts as off only if a user or the instance itself has shut it down:
// an interruption by EC2 has reason codes of other causes.
func TestHibernates(t *testing.T) {
	for _, c := range []struct {
		configured bool
		code       string
		want       bool
	}{
		{false, "", false},
		{false, "Client.UserInitiatedShutdown", false},
		{false, "Server.SpotInstanceShutdown", false},
		{false, "Client.UserInitiatedHibernate", true},
		{true, "", true},
		{true, "Client.UserInitiatedShutdown", false},
		{true, "Client.InstanceInitiatedShutdown", false},
		{true, "Server.SpotInstanceShutdown", true},
		{true, "Client.UserInitiatedHibernate", true},
	} {
		i := types.Instance{HibernationOptions: &types.HibernationOptions{Configured: &c.configured}}
		if c.code != "" {
			i.StateReason = &types.StateReason{Code: &c.code}
		}
		if have := hibernates(i); have != c.want {
			t.Errorf("set up for it %t, %q: %t, want %t", c.configured, c.code, have, c.want)
		}
	}
}
