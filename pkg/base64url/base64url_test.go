package base64url

import (
	"bytes"
	"testing"
)

func FuzzDecode(f *testing.F) {
	for _, text := range []string{"", "AA", "AB", "AA==", "A\rA", "AA\n", "A", "++", "__", "-_8", "\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		data, err := Decode(text)
		if err == nil && Encode(data) != text {
			t.Errorf("%q is read as %x, which is written as %q", text, data, Encode(data))
		}
	})
}

func TestDecode(t *testing.T) {
	if data, err := Decode(Encode([]byte("a\x00\xff"))); err != nil || !bytes.Equal(data, []byte("a\x00\xff")) {
		t.Errorf("got %x, %v", data, err)
	}
	for _, wrong := range []string{"AB", "AA==", "A\rA", "AA\n", "A", "+/", "A A"} {
		if data, err := Decode(wrong); err == nil {
			t.Errorf("%q is read as %x", wrong, data)
		}
	}
}
