package params

import (
	"errors"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// policy is a named string, as backends declare for closed sets.
type policy string

// common is embedded, to prove that the fields of embedded structs are parameters.
type common struct {
	Owner string `param:"owner" default:"root"`
}

// everything has a parameter of each type and each tag.
type everything struct {
	common
	Text     string   `param:"text" doc:"Any text."`
	FSType   string   `param:"fsType" enum:"ext4|xfs" alias:"fstype|filesystem"`
	Policy   policy   `param:"policy" enum:"Always|OnRootMismatch" default:"Always"`
	Wipe     bool     `param:"wipe" default:"true"`
	Sparse   bool     `param:"sparse"`
	Count    int      `param:"count" min:"1" max:"100" default:"3"`
	Offset   int64    `param:"offset"`
	Chunk    Size     `param:"chunk" min:"4Ki" max:"1Mi"`
	Options  []string `param:"options"`
	Hooks    []string `param:"hooks" enum:"pre|post" default:"pre, post"`
	Sector   int      `param:"sector" enum:"512|4096" default:"512"`
	Password string   `param:"mapPassword" enum:"none"`

	Note      *string   `param:"note"`
	Fast      *bool     `param:"fast"`
	IOPS      *int64    `param:"iops" min:"100"`
	Depth     *int      `param:"depth" max:"64"`
	Bandwidth *Size     `param:"bandwidth"`
	Labels    *[]string `param:"labels"`

	_ string `param:"ignored" alias:"alsoIgnored"`

	Derived int
	Skipped int `param:"-"`
}

func defaults() everything {
	return everything{
		common: common{Owner: "root"}, Policy: "Always", Wipe: true, Count: 3,
		Hooks: []string{"pre", "post"}, Sector: 512,
	}
}

// rules is a target whose Validate answers with err.
type rules struct {
	Mode string `param:"mode"`
	err  error
}

func (r *rules) Validate() error { return r.err }

// mustBeInvalid fails the test unless err is of Kind Invalid and has the text.
func mustBeInvalid(t *testing.T, err error, want string) {
	t.Helper()
	e, ok := errors.AsType[*failure.Error](err)
	switch {
	case !ok || e.Kind != failure.Invalid:
		t.Errorf("error is %v of kind %v, want kind invalid", err, failure.KindOf(err))
	case err.Error() != want:
		t.Errorf("error is\n\t%s\nwant\n\t%s", err, want)
	}
}

// mustPanic runs f and fails the test unless it panics with a text that contains each part.
func mustPanic(t *testing.T, f func(), parts ...string) {
	t.Helper()
	defer func() {
		t.Helper()
		text, ok := recover().(string)
		if !ok {
			t.Errorf("no panic with a text, want one that says %q", parts)
		}
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("the panic says %q, want %q in it", text, part)
			}
		}
	}()
	f()
}
