package base64url

import (
	"encoding/base64"
	"errors"
)

// ErrSpelling is for a text that Encode never makes.
var ErrSpelling = errors.New("this is not base64 for URLs, without padding or line breaks")

// Encode writes bytes as text.
func Encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// Decode reads what Encode wrote. Errors: ErrSpelling for anything else.
func Decode(text string) ([]byte, error) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || Encode(data) != text {
		return nil, ErrSpelling
	}
	return data, nil
}
