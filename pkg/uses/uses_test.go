package uses

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
)

func TestMessages(t *testing.T) {
	q := Query{Volume: "vol-1"}
	if have := DecodeQuery(q.Encode()); have != q {
		t.Errorf("the query %+v arrives as %+v", q, have)
	}
	for _, u := range []Use{{}, {InUse: true, Says: "staged at /x"}} {
		have, err := DecodeUse(u.Encode())
		if err != nil || have != u {
			t.Errorf("%+v arrives as %+v, %v", u, have, err)
		}
	}
}

func TestMessagesThatSayNothing(t *testing.T) {
	for name, m := range map[string]*structpb.Struct{
		"none": nil, "empty": {},
		"another type": {Fields: map[string]*structpb.Value{"inUse": structpb.NewStringValue("false")}},
	} {
		if have, err := DecodeUse(m); err == nil {
			t.Errorf("%s: %+v, want an error", name, have)
		}
	}
}
