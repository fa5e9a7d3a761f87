package faults

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Proxy is the http.Handler that injects the faults.
type Proxy struct {
	target  *url.URL
	through http.RoundTripper
	dialect Dialect

	mu      sync.Mutex
	rules   []*Rule
	chances map[Kind]int
	longest time.Duration
	random  *rand.Rand
	log     []Event
}

// New returns a Proxy to the API at a URL that is reached through a transport, without faults at first.
func New(target string, through http.RoundTripper, dialect Dialect, seed uint64) (*Proxy, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("the API's address: %w", err)
	}
	return &Proxy{target: u, through: through, dialect: dialect, random: stream(seed)}, nil
}

// Log returns the outcomes of the requests so far.
func (p *Proxy) Log() []Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

// Faults counts the requests that met a fault.
func (p *Proxy) Faults() (n int) {
	for _, event := range p.Log() {
		if event.Kind != None {
			n++
		}
	}
	return n
}

// ServeHTTP forwards a request, or injects its fault.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // The client has left.
	}
	action := p.dialect.Action(r, body)
	kind, delay := p.choose(action)
	event := Event{Action: action, Kind: kind}
	defer func() { // even if the connection is broken, which is a panic
		p.mu.Lock()
		defer p.mu.Unlock()
		p.log = append(p.log, event)
	}()
	if !p.stop(w, r, kind) {
		event.Status = p.deliver(w, r, body, kind, delay)
	}
}

// stop answers the request without the API, if its kind of fault says so.
func (p *Proxy) stop(w http.ResponseWriter, r *http.Request, kind Kind) bool {
	switch kind {
	case Throttle:
		p.dialect.Throttle(w, r)
	case Fail:
		p.dialect.Fail(w, r)
	case LoseRequest:
		drop()
	case Hang:
		<-r.Context().Done()
	default:
		return false
	}
	return true
}

// deliver forwards the request and returns the status of the API's answer.
func (p *Proxy) deliver(w http.ResponseWriter, r *http.Request, body []byte, kind Kind,
	delay time.Duration) (status int) {
	switch kind {
	case Delay:
		// The delay continues after the client has left: a late request still arrives.
		<-time.After(delay)
	case Duplicate:
		_ = p.pass(r, body)
	default:
	}
	a := p.pass(r, body)
	switch kind {
	case LoseReply:
		drop()
	case FailAfter:
		p.dialect.Fail(w, r)
	case Truncate:
		a.write(w, len(a.body)/2)
	default:
		a.write(w, len(a.body))
	}
	return a.status
}

// drop breaks the connection.
func drop() { panic(http.ErrAbortHandler) }

// answer is the API's answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// write writes the answer. If n is less than its length, it writes only n bytes, and then breaks the connection.
func (a answer) write(w http.ResponseWriter, n int) {
	for key, values := range a.header {
		w.Header()[key] = values
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(a.body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body[:n]) // The client may have left.
	if n < len(a.body) {
		drop()
	}
}

// pass forwards a request to the API, even if the client leaves.
func (p *Proxy) pass(r *http.Request, body []byte) answer {
	unreachable := answer{status: http.StatusBadGateway}
	u := *r.URL
	u.Scheme, u.Host = p.target.Scheme, p.target.Host
	u.Path = strings.TrimSuffix(p.target.Path, "/") + u.Path
	request, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, u.String(),
		bytes.NewReader(body))
	if err != nil {
		return unreachable
	}
	request.Header = r.Header.Clone()
	request.Host = r.Host
	response, err := p.through.RoundTrip(request)
	if err != nil {
		return unreachable
	}
	defer response.Body.Close() //nolint:errcheck // It was read to its end.
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return unreachable
	}
	return answer{response.StatusCode, response.Header.Clone(), text}
}
