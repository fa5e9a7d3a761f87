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

// Whatever joins a secret to another text in a parameter, an attribute or a mount option, the refusal hides it.
func TestRefusalsHideJoinedSecrets(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("one"))
	for _, joined := range secrets.Joined() {
		for name, p := range map[string]Parameters{
			"server": {Server: joined, Share: testShare}, "share": {Server: testServer, Share: joined},
			"server alone": {Server: joined}, "shareName": {ShareName: joined},
			"shareName and server": {ShareName: joined, Server: testServer},
			"subDir":               {Server: testServer, Share: testShare, SubDir: joined + "/.."},
			"template":             {Server: testServer, Share: testShare, SubDir: "${" + joined + "}"},
			"permissions":          {Server: testServer, Share: testShare, MountPermissions: joined},
			"version":              {Server: testServer, Share: testShare, NFSVersion: joined},
		} {
			spec := specOf("two")
			spec.Parameters = &p
			w.hides(name, second(w.Create(t.Context(), spec)))
		}
		for name, a := range map[string]backends.Attachment{
			"option":  {Handle: v.Handle, MountOptions: []string{joined}},
			"server":  {Attributes: map[string]string{"server": joined, "share": testShare}},
			"share":   {Attributes: map[string]string{"server": testServer, "share": joined}},
			"own":     {Attributes: map[string]string{"server": testServer, "share": "/" + joined + "/.stowage"}},
			"subDir":  {Attributes: map[string]string{"server": testServer, "share": testShare, "subDir": joined + "/.."}},
			"nfsvers": {Attributes: map[string]string{"server": testServer, "share": testShare, "nfsvers": joined}},
		} {
			w.hides("the static "+name, second(w.node.Source(t.Context(), a)))
		}
	}
}

// hides checks that a call has failed without showing the secret.
func (w *world) hides(what string, err error) {
	w.Helper()
	if err == nil || strings.Contains(err.Error(), secrets.Canary) {
		w.Errorf("%s: got %v, want a failure without the secret", what, err)
	}
}
