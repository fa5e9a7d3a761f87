package ec2

import (
	"encoding/xml"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/tests/cloud/faults"
)

const (
	apiVersion = "2016-11-15"
	namespace  = "http://ec2.amazonaws.com/doc/2016-11-15/"
)

// Server is the API.
type Server struct {
	config    Config
	signature *regexp.Regexp

	mu        sync.Mutex
	now       time.Time // the time of the current request or transition
	pending   []transition
	volumes   *store[volume]
	snapshots *store[snapshot]
	instances map[string]*Instance
	powers    *store[power]
	tokens    map[string]tokenUse
	buckets   map[string]*bucket
	pages     map[string]string // cursors, by token
	serial    uint64
	calls     map[string]int
	checks    map[string]check // of volumes that fail one
	refused   int              // requests refused because of their rate
	stuck     map[string]bool  // states that are kept
	doomed    int              // volumes that will end in error
	random    *rand.Rand       // see dice
	troubles  int              // so far
	forbidden map[string]bool  // actions that no policy allows
	used      map[string]bool  // volumes that instances use
	broken    map[string]bool  // KMS keys that EC2 cannot use
	vanished  map[string]bool  // volumes that such a key has made vanish
}

// transition is a change of state at an instant.
type transition struct {
	at    time.Time
	state string // the state that it ends
	run   func()
}

// New returns a cloud without instances, volumes and snapshots.
func New(config Config) *Server {
	return &Server{
		config:    config,
		signature: regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=[^/]+/\d{8}/[a-z0-9-]+/ec2/aws4_request, SignedHeaders=\S*host\S*, Signature=[0-9a-f]{64}$`),
		volumes:   newStore[volume](), snapshots: newStore[snapshot](), instances: map[string]*Instance{},
		powers: newStore[power](),
		tokens: map[string]tokenUse{}, buckets: map[string]*bucket{}, pages: map[string]string{}, calls: map[string]int{},
		stuck: map[string]bool{}, checks: map[string]check{}, forbidden: map[string]bool{},
		used: map[string]bool{}, broken: map[string]bool{}, vanished: map[string]bool{},
	}
}

// fault is an error answer of the API.
type fault struct {
	status        int
	code, message string
}

func faultf(code, format string, args ...any) *fault {
	return &fault{http.StatusBadRequest, code, fmt.Sprintf(format, args...)}
}

// effect executes a request whose parameters are valid. It returns the answer's body.
type effect func() (any, *fault)

func (s *Server) action(name string) func(*params) effect {
	return map[string]func(*params) effect{
		"CreateVolume": s.createVolume, "CopyVolumes": s.copyVolumes, "DeleteVolume": s.deleteVolume,
		"DescribeVolumes": s.describeVolumes, "DescribeVolumeStatus": s.describeStatus,
		"AttachVolume": s.attachVolume, "DetachVolume": s.detachVolume,
		"ModifyVolume": s.modifyVolume, "DescribeVolumesModifications": s.describeModifications,
		"CreateSnapshot": s.createSnapshot, "DeleteSnapshot": s.deleteSnapshot, "DescribeSnapshots": s.describeSnapshots,
		"EnableFastSnapshotRestores": s.enableFastRestores, "DescribeFastSnapshotRestores": s.describeFastRestores,
		"LockSnapshot": s.lockSnapshot, "DescribeLockedSnapshots": s.describeLocked,
		"CreateTags": s.createTags, "DeleteTags": s.deleteTags,
		"DescribeInstances": s.describeInstances, "DescribeInstanceTypes": s.describeTypes,
		"DescribeAvailabilityZones": s.describeZones,
	}[name]
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	values, f := s.read(r)
	var body any
	if f == nil {
		body, f = s.serve(values)
	}
	if f != nil {
		writeFault(w, f)
		return
	}
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	write(w, http.StatusOK, body)
}

// read checks the form of a request. It must have a signature, which is not verified, because there are no keys.
func (s *Server) read(r *http.Request) (url.Values, *fault) {
	switch {
	case r.Method != http.MethodPost || !strings.HasPrefix(r.Header.Get("Content-Type"),
		"application/x-www-form-urlencoded"):
		return nil, faultf("InvalidRequest", "The request is malformed: a form is to be posted")
	case !s.signature.MatchString(r.Header.Get("Authorization")) || r.Header.Get("X-Amz-Date") == "":
		return nil, &fault{http.StatusUnauthorized, "AuthFailure",
			"AWS was not able to validate the provided access credentials"}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, faultf("InvalidRequest", "The request ends early")
	}
	values, err := url.ParseQuery(string(body))
	if err != nil || values.Get("Version") != apiVersion {
		return nil, faultf("InvalidParameterValue", "The version is %q, want %q", values.Get("Version"), apiVersion)
	}
	return values, nil
}

func (s *Server) serve(values url.Values) (any, *fault) {
	name := values.Get("Action")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[name]++
	parse := s.action(name)
	if parse == nil {
		return nil, faultf("InvalidAction", "The action %s is not valid for this web service", name)
	}
	if s.throttled(name) {
		s.refused++
		return nil, tooOften()
	}
	if s.forbidden[name] {
		return nil, &fault{http.StatusForbidden, "UnauthorizedOperation", "You are not authorized to perform this operation."}
	}
	s.advance()
	p := newParams(values)
	dry := p.boolean("DryRun")
	do := parse(p)
	if f := p.check(); f != nil {
		return nil, f
	}
	if dry {
		return nil, &fault{http.StatusPreconditionFailed, "DryRunOperation",
			"Request would have succeeded, but DryRun flag is set"}
	}
	return do()
}

func tooOften() *fault {
	return &fault{http.StatusServiceUnavailable, "RequestLimitExceeded", "Request limit exceeded."}
}

// advance executes all transitions that are due.
func (s *Server) advance() {
	now := time.Now()
	slices.SortStableFunc(s.pending, func(a, b transition) int { return a.at.Compare(b.at) })
	var waiting []transition
	for len(s.pending) > 0 {
		t := s.pending[0]
		s.pending = s.pending[1:]
		if t.at.After(now) || s.stuck[t.state] {
			waiting = append(waiting, t)
			continue
		}
		s.now = t.at
		t.run()
	}
	s.pending, s.now = waiting, now
}

// after schedules the end of a state.
func (s *Server) after(d time.Duration, state string, run func()) {
	if s.troubled(s.config.Troubles.Stuck) {
		d += s.config.Troubles.For
	}
	s.pending = append(s.pending, transition{s.now.Add(d), state, run})
}

// newID returns a new unique ID, in no particular order.
func (s *Server) newID(prefix string) string {
	s.serial++
	return fmt.Sprintf("%s-0%016x", prefix, s.serial*0x9e3779b97f4a7c15)
}

func wellFormed(prefix, id string) bool {
	digits, ok := strings.CutPrefix(id, prefix+"-")
	return ok && (len(digits) == 8 || len(digits) == 17) && strings.Trim(digits, "0123456789abcdef") == ""
}

type errorResponse struct {
	XMLName xml.Name `xml:"Response"`
	Code    string   `xml:"Errors>Error>Code"`
	Message string   `xml:"Errors>Error>Message"`
	ID      string   `xml:"RequestID"`
}

func writeFault(w http.ResponseWriter, f *fault) {
	write(w, f.status, errorResponse{Code: f.code, Message: f.message, ID: requestID})
}

const requestID = "00000000-0000-0000-0000-000000000000"

func write(w http.ResponseWriter, status int, body any) {
	text, err := xml.Marshal(body)
	if err != nil {
		panic(err) // All answers are types of this package.
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // The client may have left.
}

// Dialect returns the API's dialect for a faults.Proxy.
func Dialect() faults.Dialect {
	return faults.Dialect{
		Action: func(_ *http.Request, body []byte) string {
			values, _ := url.ParseQuery(string(body))
			return values.Get("Action")
		},
		Throttle: func(w http.ResponseWriter, _ *http.Request) { writeFault(w, tooOften()) },
		Fail: func(w http.ResponseWriter, _ *http.Request) {
			writeFault(w, &fault{http.StatusInternalServerError, "InternalError", "An internal error has occurred"})
		},
	}
}
