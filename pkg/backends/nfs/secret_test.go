package nfs

import (
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/secrets"
)

// TestRefusalsHideSecrets joins a secret to a mount option or a source: no comma separates the two. The refusal becomes
// an event and a log line.
func TestRefusalsHideSecrets(t *testing.T) {
	w := newWorld(t)
	secret := " password=" + secrets.Canary
	v := w.make(specOf("one"))
	for name, a := range map[string]backends.Attachment{
		"a version":         {Handle: v.Handle, MountOptions: []string{"vers=4.1" + secret}},
		"a second version":  {Handle: v.Handle, MountOptions: []string{"vers=4.1", "nfsvers=4.2" + secret}},
		"a first version":   {Handle: v.Handle, MountOptions: []string{"vers=4.1" + secret, "nfsvers=4.2"}},
		"an unknown option": {Handle: v.Handle, MountOptions: []string{"nothing" + secret}},
		"the server's zone": {Attributes: map[string]string{"server": "fe80::1%eth0 " + secrets.Canary,
			"share": testShare}},
		"the server":           {Attributes: map[string]string{"server": "nfs" + secret, "share": testShare}},
		"the share":            {Attributes: map[string]string{"server": testServer, "share": testShare + secret}},
		"a share that is none": {Attributes: map[string]string{"server": testServer, "share": "x" + secret}},
		"the directory": {Attributes: map[string]string{"server": testServer, "share": testShare,
			"subDir": "mine" + secret}},
	} {
		_, err := w.node.Source(t.Context(), a)
		w.fails(name, err, backends.Invalid)
		if err != nil && strings.Contains(err.Error(), secrets.Canary) {
			t.Errorf("%s: the refusal shows the secret: %v", name, err)
		}
	}
	for name, parameters := range map[string]*Parameters{
		"the server":    {Server: "nfs" + secret, Share: testShare},
		"the zone":      {Server: "[fe80::1%eth0 " + secrets.Canary + "]", Share: testShare},
		"the share":     {Server: testServer, Share: testShare + secret},
		"the directory": {Server: testServer, Share: testShare, SubDir: "mine" + secret},
	} {
		spec := specOf("two")
		spec.Parameters = parameters
		_, err := w.Create(t.Context(), spec)
		w.fails(name+" of a class", err, backends.Invalid)
		if err != nil && strings.Contains(err.Error(), secrets.Canary) {
			t.Errorf("%s of a class: the refusal shows the secret: %v", name, err)
		}
	}
}
