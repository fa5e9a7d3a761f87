package v1alpha1

import (
	"strings"
	"unicode/utf8"
)

// Message is a text that the API server takes as a message: of 1,024 bytes at most, in UTF-8.
func Message(text string) string {
	const most = 1024
	text = strings.ToValidUTF8(text, "?")
	for len(text) > most {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}
