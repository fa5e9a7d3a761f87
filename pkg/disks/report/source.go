package report

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
)

// Source is the state of the NodeStorage in which an agent has read what is wanted.
type Source struct {
	// Object is the UID of the NodeStorage. It is empty if the agent is of an earlier version.
	Object string `json:"object"`
	// Generation of the object.
	Generation int64 `json:"generation"`
	// IsNewest says that the agent has just read past its cache that the NodeStorage is in this state.
	IsNewest bool `json:"-"`
}

// ErrOlder is the error for what was read in an older state of the NodeStorage than is known, or in another
// NodeStorage.
var ErrOlder = errors.New("another agent has read a newer state of the NodeStorage")

// The parameters of a URL that have a Source. It is not in the body, where a server of an earlier version refuses
// unknown fields.
const (
	objectParameter     = "object"
	generationParameter = "generation"
	newestParameter     = "newest"
)

// longestUID is more than a UID has.
const longestUID = 128

func (s Source) query() string {
	if s.Object == "" {
		return ""
	}
	values := url.Values{objectParameter: {s.Object}, generationParameter: {strconv.FormatInt(s.Generation, 10)}}
	if s.IsNewest {
		values.Set(newestParameter, "true")
	}
	return values.Encode()
}

func sourceOf(values url.Values) (Source, error) {
	s := Source{Object: values.Get(objectParameter), IsNewest: values.Get(newestParameter) == "true"}
	if s.Object == "" {
		return Source{}, nil
	}
	var err error
	s.Generation, err = strconv.ParseInt(values.Get(generationParameter), 10, 64)
	if err == nil && len(s.Object) > longestUID {
		err = fmt.Errorf("the UID %.150q has more than %d characters", s.Object, longestUID)
	}
	if err != nil {
		return Source{}, fmt.Errorf("the state of the NodeStorage: %w", err)
	}
	return s, nil
}
