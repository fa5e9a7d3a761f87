package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// mostSize is how long a Size is at most.
const mostSize = 24

// Size is a number of bytes, such as 200Mi. It is a text where a worker writes it: everybody can read that, while one
// quantity that cannot be read would hide the objects of all nodes from those who read them.
//
// +kubebuilder:validation:Pattern=`^[0-9]{1,19}([KMGTPE]i)?$`
// +kubebuilder:validation:MaxLength=24
type Size string

// NewSize returns the Size of so many bytes.
func NewSize(bytes int64) Size {
	return Size(resource.NewQuantity(max(bytes, 0), resource.BinarySI).String())
}

// Bytes returns the number of bytes; 0 for a text that is no size.
func (s Size) Bytes() int64 {
	if len(s) > mostSize {
		return 0
	}
	quantity, err := resource.ParseQuantity(string(s))
	if err != nil {
		return 0
	}
	return max(quantity.Value(), 0)
}
