package limits

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestVolumes(t *testing.T) {
	for _, row := range []struct {
		name string
		m    Machine
		want int64
	}{
		{"nothing is known", Machine{ForeignDisks: 1, Interfaces: 2}, 0},
		{"an own limit", Machine{Attachments: 27, Interfaces: 4, ForeignDisks: 1}, 26},
		{"a limit shared with interfaces", Machine{Attachments: 28, SharedWithInterfaces: true, Interfaces: 4,
			ForeignDisks: 1}, 23},
		{"some are reserved", Machine{Attachments: 28, ForeignDisks: 2, Reserved: 3}, 23},
		{"others have taken all", Machine{Attachments: 4, ForeignDisks: 6}, 1},
	} {
		if have := row.m.Volumes(); have != row.want {
			t.Errorf("%s: %d volumes, want %d", row.name, have, row.want)
		}
	}
}

func TestRefreshed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disks, looks, broken := 1, 0, errors.New("no answer")
		var err error
		r := Refresh(time.Minute, func(context.Context) (Machine, error) {
			looks++
			return Machine{Attachments: 28, ForeignDisks: disks}, err
		})
		for _, row := range []struct {
			name   string
			change func()
			disks  int
			looks  int
			err    error
		}{
			{"the first look fails", func() { err = broken }, 0, 1, broken},
			{"the first that succeeds", func() { err = nil }, 1, 2, nil},
			{"soon after it", func() { disks = 2 }, 1, 2, nil},
			{"when it is old", func() { time.Sleep(61 * time.Second) }, 2, 3, nil},                                       //nolint:forbidigo // The clock is the test's own.
			{"when it is old and the cloud is silent", func() { err = broken; time.Sleep(61 * time.Second) }, 2, 4, nil}, //nolint:forbidigo // As above.
		} {
			row.change()
			m, err := r.Get(t.Context())
			if m.ForeignDisks != row.disks || looks != row.looks || !errors.Is(err, row.err) {
				t.Errorf("%s: got %+v, %v after %d looks; want %d disks, %v, %d looks", row.name, m, err, looks, row.disks, row.err,
					row.looks)
			}
		}
	})
}
