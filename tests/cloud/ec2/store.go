package ec2

import "time"

// store keeps resources with their past, so that earlier states can be shown.
type store[T any] struct {
	order    []string // of all that ever existed, oldest first
	versions map[string][]version[T]
}

// version is the state of a resource from an instant on. A nil value means that it is gone.
type version[T any] struct {
	at    time.Time
	value *T
}

func newStore[T any]() *store[T] { return &store[T]{versions: map[string][]version[T]{}} }

// now returns the current version of a resource, or nil if there is none. It must not be changed.
func (s *store[T]) now(id string) *T {
	v := s.versions[id]
	if len(v) == 0 {
		return nil
	}
	return v[len(v)-1].value
}

// then returns the version of a resource at an instant.
func (s *store[T]) then(id string, at time.Time) *T {
	var value *T
	for _, v := range s.versions[id] {
		if v.at.After(at) {
			break
		}
		value = v.value
	}
	return value
}

// put sets the version of a resource from an instant on; nil removes it.
func (s *store[T]) put(id string, at time.Time, value *T) {
	if _, known := s.versions[id]; !known {
		s.order = append(s.order, id)
	}
	s.versions[id] = append(s.versions[id], version[T]{at, value})
}

// all returns the existing resources, oldest first.
func (s *store[T]) all() (values []*T) {
	for _, id := range s.order {
		if value := s.now(id); value != nil {
			values = append(values, value)
		}
	}
	return values
}
