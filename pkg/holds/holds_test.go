package holds

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
)

func TestMessages(t *testing.T) {
	q := Query{Volume: "vol-1", Node: "i-1"}
	if have := DecodeQuery(q.Encode()); have != q {
		t.Errorf("the query %+v arrives as %+v", q, have)
	}
	for _, h := range []Hold{{}, {Held: true, Says: "it is in use"}} {
		have, err := DecodeHold(h.Encode())
		if err != nil || have != h {
			t.Errorf("%+v arrives as %+v, %v", h, have, err)
		}
	}
}

func TestMessagesThatSayNothing(t *testing.T) {
	for name, m := range map[string]*structpb.Struct{
		"none": nil, "empty": {},
		"another type": {Fields: map[string]*structpb.Value{"held": structpb.NewStringValue("false")}},
	} {
		if have, err := DecodeHold(m); err == nil {
			t.Errorf("%s: %+v, want an error", name, have)
		}
	}
}
