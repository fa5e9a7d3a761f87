package iam

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Client sends requests, as the AWS SDK's does.
type Client interface {
	Do(*http.Request) (*http.Response, error)
}

// Guard stands in front of EC2 for one principal: it refuses requests that the policy does not allow.
type Guard struct {
	Policy Policy
	Tags   Tags
	Next   Client

	mu   sync.Mutex
	seen []Access
}

// Do forwards a request, or answers that it is not allowed.
func (g *Guard) Do(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	list, known := accesses(values, g.Tags)
	if !known {
		return refusal(request, "which rights "+values.Get("Action")+" takes is not known here"), nil
	}
	for _, access := range list {
		g.mu.Lock()
		g.seen = append(g.seen, access)
		g.mu.Unlock()
		if !g.Policy.Allows(access) {
			return refusal(request, fmt.Sprintf("no statement allows %s on %s with %v", access.Action, access.Resource,
				access.Context)), nil
		}
	}
	return g.Next.Do(request)
}

// Seen returns all rights that requests needed.
func (g *Guard) Seen() []Access {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.seen)
}

// refusal is EC2's answer.
func refusal(request *http.Request, why string) *http.Response {
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	text := `<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>` + escape.Replace(why) +
		`</Message></Error></Errors><RequestID>00000000-0000-0000-0000-000000000000</RequestID></Response>`
	return &http.Response{
		StatusCode: http.StatusForbidden, Status: "403 Forbidden", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Request: request,
		Header:  http.Header{"Content-Type": {"text/xml;charset=UTF-8"}}, ContentLength: int64(len(text)),
		Body: io.NopCloser(strings.NewReader(text)),
	}
}
