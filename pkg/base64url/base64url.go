package base64url

import (
	"encoding/base64"
	"errors"
)

// ErrSpelling is the error for a text that Encode never returns.
var ErrSpelling = errors.New("this is not base64 for URLs, without padding or line breaks")

// Encode encodes bytes as text.
func Encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// Decode decodes the result of Encode. Errors: ErrSpelling for anything else.
func Decode(text string) ([]byte, error) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || Encode(data) != text {
		return nil, ErrSpelling
	}
	return data, nil
}
