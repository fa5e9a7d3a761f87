package pools

import (
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
)

func TestMessages(t *testing.T) {
	for _, all := range [][]Pool{nil, {
		{Name: "image", Type: "image", AvailableBytes: math.MaxInt64, LargestBytes: 1<<53 + 1},
		{Name: "slow", Type: "directory", Problem: "its disk is away"},
	}} {
		if have, err := Decode(Encode(all)); err != nil || !slices.Equal(have, all) {
			t.Errorf("%+v arrives as %+v, %v", all, have, err)
		}
	}
	if have, err := Decode(nil); err != nil || have != nil {
		t.Errorf("no message is read as %+v, %v", have, err)
	}
}

func TestMessagesThatAreNone(t *testing.T) {
	for name, p := range map[string]map[string]any{
		"no name":       {"availableBytes": "1", "largestBytes": "1"},
		"no size":       {"name": "a", "largestBytes": "1"},
		"negative":      {"name": "a", "availableBytes": "-1", "largestBytes": "1"},
		"a larger type": {"name": "a", "availableBytes": "1", "largestBytes": "9223372036854775808"},
		"a number":      {"name": "a", "availableBytes": 1.0, "largestBytes": "1"},
	} {
		m, err := structpb.NewStruct(map[string]any{"pools": []any{p}})
		if err != nil {
			t.Fatal(err)
		}
		if have, err := Decode(m); err == nil {
			t.Errorf("%s: it is read as %+v", name, have)
		}
	}
}
