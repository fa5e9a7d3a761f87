package machines

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
)

func TestMessages(t *testing.T) {
	q := Query{Node: "i-1", ProviderID: "aws:///a/i-1"}
	if have := DecodeQuery(q.Encode()); have != q {
		t.Errorf("the query %+v arrives as %+v", q, have)
	}
	for _, m := range []Machine{{}, {State: Stopped, Began: time.Unix(7, 8).UTC(), Says: "it is off"}} {
		have, err := DecodeMachine(m.Encode())
		if err != nil || have != m {
			t.Errorf("%+v arrives as %+v, %v", m, have, err)
		}
	}
}

func TestMessagesThatProveNothing(t *testing.T) {
	for name, m := range map[string]*structpb.Struct{
		"none": nil, "empty": {}, "another type": {Fields: map[string]*structpb.Value{"state": structpb.NewBoolValue(true)}},
		"another's word": message(map[string]string{"state": "off"}),
	} {
		if have, err := DecodeMachine(m); err != nil || have.State.Off() {
			t.Errorf("%s: %+v, %v; want a state that proves nothing", name, have, err)
		}
	}
	if have, err := DecodeMachine(message(map[string]string{"state": "stopped", "began": "yesterday"})); err == nil {
		t.Errorf("a time that is none is read as %+v", have)
	}
}
