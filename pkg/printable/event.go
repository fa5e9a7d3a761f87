package printable

import "strings"

// mostEvent is the maximum length of an event's text in bytes, slightly below the API server's limit.
const mostEvent = 1000

// Event returns a text as Quote does, cut to the length that an event of Kubernetes may have. The API server refuses
// longer ones.
func Event(text string) string {
	text = Quote(text)
	return strings.ToValidUTF8(text[:min(len(text), mostEvent)], "")
}
