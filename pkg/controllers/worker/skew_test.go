package worker

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/disks/report"
)

// TestOlderDefinition checks that a status is written although a CRD of an earlier version does not have one of its
// fields. The clients of stowage-manager are strict unless a write says otherwise.
func TestOlderDefinition(t *testing.T) {
	s := newScene(t)
	old := interceptor.NewClient(s.api.(client.WithWatch), interceptor.Funcs{SubResourceUpdate: func(ctx context.Context,
		c client.Client, _ string, o client.Object, options ...client.SubResourceUpdateOption) error {
		asked := (&client.SubResourceUpdateOptions{}).ApplyOptions(options)
		if asked.FieldValidation == metav1.FieldValidationStrict {
			return apierrors.NewBadRequest(`strict decoding error: unknown field "status.new"`)
		}
		return c.Status().Update(ctx, o)
	}})
	s.agent.client = client.WithFieldValidation(old, metav1.FieldValidationStrict)
	s.disks.state.Volumes = []report.Volume{{Name: "disk-a", Mode: report.Block, State: report.Available}}
	if o := s.look("one"); o.Status.Available != 1 {
		t.Errorf("the status is %+v, want the volume that was found", o.Status)
	}
}
