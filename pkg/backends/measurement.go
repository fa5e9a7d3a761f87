package backends

import "context"

// Meter knows what the storage itself measures of volumes that a node uses.
type Meter interface {
	// Measure returns the measurements of a staged volume, whose device has the path. Each call returns the same metrics,
	// with the values of now. It may hang in the kernel, so its caller must bound its time.
	//
	// Kinds: NotFound for a handle that no volume can have; Unavailable when the device is not the volume's, or does not
	// answer with measurements.
	Measure(ctx context.Context, handle, device string) ([]Measurement, error)
}

// Measurement is one metric of a volume.
type Measurement struct {
	Name, Help string
	Counter    bool    // whether Value never falls while the volume stays attached
	Value      float64 // of a histogram: the sum of all observations
	// Buckets makes it a histogram: how many observations are at most as large as the key. It is nil otherwise.
	Buckets map[float64]uint64
	Count   uint64 // of all observations of a histogram
}
