package ec2_test

import (
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// TestVolumeWithABadKeyVanishes creates a volume whose KMS key EC2 cannot use, and then asks for the token again.
func TestVolumeWithABadKeyVanishes(t *testing.T) {
	for name, row := range map[string]struct {
		dead bool
		want string // the code of the answer to the token
	}{
		"the token answers with the volume":    {false, ""},
		"the token answers that it is deleted": {true, "IdempotentParameterMismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { volumeWithABadKeyVanishes(t, row.dead, row.want) })
		})
	}
}

func volumeWithABadKeyVanishes(t *testing.T, dead bool, want string) {
	const key = "alias/broken"
	settings := config()
	settings.DeadTokens = dead
	c := start(t, settings)
	with := func(token string) func(*ec2.CreateVolumeInput) {
		return func(in *ec2.CreateVolumeInput) {
			in.Encrypted, in.KmsKeyId, in.ClientToken = aws.Bool(true), aws.String(key), aws.String(token)
		}
	}
	c.server.BreakKey(key, true)
	out, err := c.create(with("1"))
	if err != nil || out.State != "creating" {
		t.Fatalf("got %+v with %v, want a volume that is being created", out, err)
	}
	c.volume(nil) // In this time the other is gone.
	_, err = c.describe(*out.VolumeId)
	c.fails("describing it", "InvalidVolume.NotFound", err)
	_, err = c.DeleteVolume(c.Context(), &ec2.DeleteVolumeInput{VolumeId: out.VolumeId})
	c.fails("deleting it", "InvalidVolume.NotFound", err)
	again, err := c.create(with("1"))
	c.fails("the token once more", want, err)
	if err == nil && *again.VolumeId != *out.VolumeId {
		t.Errorf("the token has created %s, want %s", *again.VolumeId, *out.VolumeId)
	}
	if n := len(c.server.Volumes()); n != 1 {
		t.Errorf("there are %d volumes, want 1", n)
	}
	c.server.BreakKey(key, false)
	c.volume(with("2"))
}
