package filesystem

import (
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/classes"
)

// Format accepts exactly the sizes that Least promises, to the byte as far as devices go.
func TestLeast(t *testing.T) {
	for _, fsType := range Types() {
		t.Run(fsType, func(t *testing.T) {
			needTools(t, fsType)
			least := classes.Least(fsType)
			if _, err := NewTools(1).Format(t.Context(), request(attach(t, image(t, least)), fsType)); err != nil {
				t.Errorf("a device of %d bytes: %v", least, err)
			}
			_, err := NewTools(1).Format(t.Context(), request(attach(t, image(t, least-4096)), fsType))
			wantKind(t, err, backends.OutOfRange)
		})
	}
	if got := classes.Least("ntfs"); got != 0 {
		t.Errorf("Least of a filesystem that is never made is %d", got)
	}
}
