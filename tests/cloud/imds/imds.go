package imds

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Document is the part of the instance's identity document that the driver uses, with EC2's own names.
type Document struct {
	InstanceID       string `json:"instanceId"`
	InstanceType     string `json:"instanceType"`
	AvailabilityZone string `json:"availabilityZone"`
	Region           string `json:"region"`
}

// Mood is the service's way to treat requests.
type Mood int

// The moods.
const (
	Answering Mood = iota
	Far            // more hops away than the hop limit of answers to PUT: a token never arrives
	Dropping       // no request is answered
	Disabled       // HttpEndpoint is disabled
	Strange        // another service listens at the address
	Failing        // it answers with an error
	Old            // it supports only the first version, which needs no token
)

// Service is a metadata service.
type Service struct {
	URL string

	mu         sync.Mutex // guards the following fields
	mood       Mood
	document   Document
	interfaces int
	tokens     map[string]time.Time // their expiry
	requests   []string
}

// Serve serves the instance's metadata until the test ends.
func Serve(tb testing.TB, document Document) *Service {
	tb.Helper()
	s := &Service{document: document, interfaces: 1, tokens: map[string]time.Time{}}
	server := httptest.NewServer(s)
	tb.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Be changes the mood.
func (s *Service) Be(mood Mood) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mood = mood
}

// Tell sets the document.
func (s *Service) Tell(document Document) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.document = document
}

// SetInterfaces sets the number of the instance's network interfaces.
func (s *Service) SetInterfaces(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interfaces = n
}

// Expire makes all tokens invalid, as a restart of the service does.
func (s *Service) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// Requests returns the requests so far, such as "GET /latest/meta-data/".
func (s *Service) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	mood := s.mood
	s.mu.Unlock()
	switch {
	case mood == Dropping, mood == Far && r.Method == http.MethodPut:
		<-r.Context().Done()
	case mood == Disabled:
		http.Error(w, "", http.StatusForbidden)
	case mood == Strange, mood == Old && r.Method == http.MethodPut:
		http.NotFound(w, r)
	case mood == Failing:
		http.Error(w, "", http.StatusInternalServerError)
	case r.Method == http.MethodPut:
		s.token(w, r)
	case r.Method == http.MethodGet:
		s.get(w, r)
	default:
		http.Error(w, "", http.StatusMethodNotAllowed)
	}
}

// token issues a token ("Use the Instance Metadata Service": for 1 second to 6 hours, and never through a proxy).
func (s *Service) token(w http.ResponseWriter, r *http.Request) {
	const header, longest = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds", 21600
	seconds, err := strconv.Atoi(r.Header.Get(header))
	switch {
	case r.URL.Path != "/latest/api/token":
		http.NotFound(w, r)
	case r.Header.Get("X-Forwarded-For") != "":
		http.Error(w, "", http.StatusForbidden)
	case err != nil || seconds < 1 || seconds > longest:
		http.Error(w, "", http.StatusBadRequest)
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		token := fmt.Sprintf("token-%d==", len(s.requests))
		s.tokens[token] = time.Now().Add(time.Duration(seconds) * time.Second)
		w.Header().Set(header, strconv.Itoa(seconds))
		fmt.Fprint(w, token)
	}
}

func (s *Service) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mood != Old && !time.Now().Before(s.tokens[r.Header.Get("X-Aws-Ec2-Metadata-Token")]) {
		http.Error(w, "", http.StatusUnauthorized)
		return
	}
	switch r.URL.Path {
	case "/latest/dynamic/instance-identity/document":
		text, err := json.Marshal(s.document)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "%s", text)
	case "/latest/meta-data/network/interfaces/macs/":
		var macs []string
		for i := range s.interfaces {
			macs = append(macs, fmt.Sprintf("02:00:00:00:00:%02x/", i))
		}
		fmt.Fprint(w, strings.Join(macs, "\n"))
	default: // An instance without a role has no iam folder, either.
		http.NotFound(w, r)
	}
}
