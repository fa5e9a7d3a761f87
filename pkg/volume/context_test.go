package volume_test

import (
	"maps"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/volume"
)

func TestContextSurvivesTheRoundTrip(t *testing.T) {
	settings, attributes := map[string]string{"fsGroupChangePolicy": "Always"}, map[string]string{"serial": "vol1"}
	context := volume.EncodeContext(settings, attributes)
	context["storage.kubernetes.io/csiProvisionerIdentity"] = "123-local"
	context["csi.storage.k8s.io/pod.name"] = "web-0"
	context["csi.storage.k8s.io/serviceAccount.tokens"] = "token"
	gotSettings, gotAttributes, err := volume.DecodeContext(context, []string{"fsGroupChangePolicy", "other"})
	if err != nil || !maps.Equal(gotSettings, settings) || !maps.Equal(gotAttributes, attributes) {
		t.Errorf("got %v, %v, %v", gotSettings, gotAttributes, err)
	}
}

func TestContextOfAHandMadeVolume(t *testing.T) {
	settings, attributes, err := volume.DecodeContext(map[string]string{"serial": "vol1"}, nil)
	if err != nil || len(settings) != 0 || attributes["serial"] != "vol1" {
		t.Errorf("got %v, %v, %v", settings, attributes, err)
	}
}

func TestContextOfANewerDriver(t *testing.T) {
	_, _, err := volume.DecodeContext(map[string]string{"stowage.dev/context": "2"}, nil)
	if !backends.Is(err, backends.Invalid) {
		t.Errorf("got %v", err)
	}
}

func FuzzDecodeContext(f *testing.F) {
	f.Add("stowage.dev/context", "1")
	f.Add("csi.storage.k8s.io/x", "y")
	f.Fuzz(func(t *testing.T, key, value string) {
		_, attributes, err := volume.DecodeContext(map[string]string{key: value, "stowage.dev/context": "1"}, nil)
		if err != nil && !backends.Is(err, backends.Invalid) {
			t.Errorf("got %v", err)
		}
		if len(attributes) > 1 {
			t.Errorf("attributes are %v", attributes)
		}
	})
}
