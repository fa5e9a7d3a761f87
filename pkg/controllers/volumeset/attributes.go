package volumeset

import (
	"context"
	"fmt"
	"maps"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/params/placeholder"
)

// order sets the VolumeOrder of new volumes. If the template names a VolumeAttributesClass that cannot be used, no
// volumes are created, and all other work continues.
func (r *reconciler) order(ctx context.Context, o *round) {
	if o.actions.create == 0 {
		return
	}
	mutable, unusable := r.attributes(ctx, o)
	if unusable != nil {
		o.problem = verdict{reasonAttributesUnusable, unusable.Error()}
		o.actions.create, o.sites = 0, nil
		o.lookAgain()
		return
	}
	o.settings.MutableParameters = mutable
	o.order = newOrder(o.set.Spec.Template, o.settings)
}

// attributes returns the parameters of a set's VolumeAttributesClass, or an error if the class cannot be used. Without
// a class it returns none. The class is read past the cache, because clusters before Kubernetes 1.34 have none in
// storage.k8s.io/v1 to watch. Its parameters never change.
func (r *reconciler) attributes(ctx context.Context, o *round) (mutable map[string]string, unusable error) {
	name, driver := o.set.Spec.Template.Spec.VolumeAttributesClassName, o.class.Provisioner
	if name == "" {
		return nil, nil
	}
	class := &storagev1.VolumeAttributesClass{}
	err := r.live.Get(ctx, client.ObjectKey{Name: name}, class)
	switch {
	case meta.IsNoMatchError(err):
		return nil, fmt.Errorf("the template names the VolumeAttributesClass %q, and this Kubernetes has none in "+
			"storage.k8s.io/v1: leave it out, or use 1.34 or later", name)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("the VolumeAttributesClass %q of the template does not exist: create it, or name another",
			name)
	case err != nil: // Its text may vary, and each new text would trigger a reconciliation.
		r.filler.log.Warn("a VolumeAttributesClass was not read", "set", o.set.Name, "class", name, "error", err)
		return nil, fmt.Errorf("the VolumeAttributesClass %q of the template could not be read: the manager asks for it"+
			" again, and its log has the cause", name)
	case class.DriverName != driver:
		return nil, fmt.Errorf("the VolumeAttributesClass %q is of the driver %s, and the StorageClass of %s: name one of "+
			"the same driver", name, class.DriverName, driver)
	}
	for _, key := range slices.Sorted(maps.Keys(class.Parameters)) {
		if mark, found := placeholder.OfClaim(class.Parameters[key]); found {
			return nil, fmt.Errorf("the parameter %q of VolumeAttributesClass %s has %s, and volumes of a set are created "+
				"before there is a claim; use a class without it", key, name, mark)
		}
	}
	return class.Parameters, nil
}
