package history_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/tests/cloud/history"
)

// story is a History whose true states the test writes itself.
type story struct {
	history.History
	states []history.State
}

// is sets a state from now on.
func (s *story) is(volume string, there bool, nodes ...string) {
	attached := map[string]string{}
	for _, node := range nodes {
		attached[node] = history.Attached
	}
	s.states = append(s.states, history.State{At: time.Now(), Volume: volume, There: there, Usable: there,
		Nodes: attached})
}

// call records a call that takes a second; all volumes have the same name.
func (s *story) call(op history.Op, volume, node string) {
	_ = s.Note(history.Call{Op: op, Name: "n", Volume: volume, Node: node, Limit: time.Minute}, func() (string, error) {
		<-time.After(time.Second)
		return "", nil
	})
}

// Each check finds its violation, and none in a correct life.
func TestCheck(t *testing.T) {
	for name, row := range map[string]struct {
		story func(s *story)
		want  string // empty for nothing
	}{
		"a whole life": {func(s *story) {
			s.is("v", true)
			s.call(history.Create, "v", "")
			s.is("v", true, "a")
			s.call(history.Attach, "v", "a")
			s.is("v", true)
			s.call(history.Detach, "v", "a")
			s.is("v", false)
			s.call(history.Delete, "v", "")
			s.is("w", true)
			s.call(history.Create, "w", "")
			_ = s.Note(history.Call{Op: history.Delete, Volume: "w", Limit: time.Minute}, func() (string, error) {
				<-time.After(time.Second)
				s.is("w", false)
				return "", errors.New("the answer was lost")
			})
		}, ""},
		"a leak": {func(s *story) { s.is("v", true) }, "v was leaked"},
		"a volume that is not there": {func(s *story) {
			s.is("v", false)
			s.call(history.Create, "v", "")
		}, "could not be used"},
		"a volume nobody knows": {func(s *story) { s.call(history.Create, "v", "") }, "could not be used"},
		"two of a name": {func(s *story) {
			s.is("v", true)
			s.call(history.Create, "v", "")
			s.is("w", true)
			s.call(history.Create, "w", "")
		}, "returned w, and before that v"},
		"a volume that was taken back": {func(s *story) {
			s.is("v", true)
			s.call(history.Create, "v", "")
			s.is("v", false)
		}, "without anybody's asking"},
		"a deletion that is none": {func(s *story) {
			s.is("v", true)
			s.call(history.Delete, "v", "")
		}, "it was there then"},
		"an attachment that is none": {func(s *story) { s.is("v", true); s.call(history.Attach, "v", "a") },
			"attach v to a succeeded"},
		"an attachment elsewhere": {func(s *story) { s.is("v", true, "b"); s.call(history.Attach, "v", "a") },
			"map[b:attached]"},
		"a detachment that is none": {func(s *story) { s.is("v", true, "a"); s.call(history.Detach, "v", "a") },
			"detach v from a succeeded"},
		"an attachment that did not last": {func(s *story) {
			s.is("v", true, "a")
			s.call(history.Attach, "v", "a")
			<-time.After(time.Second)
			s.is("v", true)
		}, "for somebody"},
		"a volume on two nodes":            {func(s *story) { s.is("v", true, "a", "b") }, "at a time"},
		"a call that does not end in time": {func(s *story) { slow(s) }, "took 1m1s and had 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &story{}
				row.story(s)
				wrong := strings.Join(s.Check(s.states, false), "\n")
				if row.want == "" && wrong != "" || !strings.Contains(wrong, row.want) {
					t.Errorf("found %q, want %q", wrong, row.want)
				}
			})
		})
	}
}

func slow(s *story) {
	_ = s.Note(history.Call{Op: history.Create, Name: "n", Limit: time.Minute}, func() (string, error) {
		<-time.After(time.Minute + time.Second)
		return "", errors.New("too late")
	})
}

// With crashes, a stray request may attach a volume while it is detached. A volume that never was detached is still a
// violation.
func TestCheckWithCrashes(t *testing.T) {
	for name, row := range map[string]struct {
		before, during []string // the nodes to which it is attached
		crashes        bool
		want           string
	}{
		"a stray attachment":              {nil, []string{"a"}, true, ""},
		"a stray one without a crash":     {nil, []string{"a"}, false, "detach v from a succeeded"},
		"an attachment that always was":   {[]string{"a"}, []string{"a"}, true, "detach v from a succeeded"},
		"one that ended and began anew":   {[]string{"a"}, nil, true, ""},
		"a stray attachment to some node": {[]string{"b"}, []string{"a"}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &story{}
				s.is("v", true, row.before...)
				<-time.After(time.Second)
				_ = s.Note(history.Call{Op: history.Detach, Volume: "v", Node: "a", Limit: time.Minute}, func() (string, error) {
					<-time.After(time.Second)
					s.is("v", true, row.during...)
					<-time.After(time.Second)
					return "", nil
				})
				<-time.After(time.Second)
				s.is("v", false)
				wrong := strings.Join(s.Check(s.states, row.crashes), "\n")
				if row.want == "" && wrong != "" || !strings.Contains(wrong, row.want) {
					t.Errorf("found %q, want %q", wrong, row.want)
				}
			})
		})
	}
}
