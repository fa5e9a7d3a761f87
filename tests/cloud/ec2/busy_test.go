package ec2_test

import (
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// TestBusyAttachment detaches a volume that its instance uses, and releases the volume later or ends the instance.
func TestBusyAttachment(t *testing.T) {
	for name, release := range map[string]func(c *cloud, id string){
		"released":              func(c *cloud, id string) { c.server.Use(id, false) },
		"the instance is ended": func(c *cloud, _ string) { c.server.SetPower(c.instance[0], "terminated") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := start(t, config())
				id := c.volume(nil)
				c.fails("attaching", "", c.attach(id, c.instance[0], "/dev/xvdba"))
				c.when("attached", id, func(v types.Volume) bool { return v.Attachments[0].State == "attached" })
				c.server.Use(id, true)
				for range 2 {
					c.fails("detaching", "", c.detach(id, c.instance[0]))
					c.volume(nil) // In this time a detachment would have ended.
					c.when("busy", id, func(v types.Volume) bool { return v.State == "in-use" && v.Attachments[0].State == "busy" })
				}
				c.fails("attaching elsewhere", "VolumeInUse", c.attach(id, c.instance[1], "/dev/xvdba"))
				release(c, id)
				c.until("available", id)
			})
		})
	}
}
