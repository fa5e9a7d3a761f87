package wire

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// Kind is the kind of a frame.
type Kind string

// The kinds of frames, in their usual order.
const (
	Up     Kind = "up"     // the guest is about to run the first program
	Begin  Kind = "begin"  // a program begins
	Output Kind = "output" // its output
	Alive  Kind = "alive"  // nothing else happened
	End    Kind = "end"    // a program has ended
	Done   Kind = "done"   // all programs have ended, and the guest powers off
	Broken Kind = "broken" // the guest cannot continue
)

// Pulse is the interval at which the guest reports that it is alive.
const Pulse = 5 * time.Second

// Frame is one message from the guest.
type Frame struct {
	Kind    Kind
	Program string  `json:",omitempty"`
	Text    string  `json:",omitempty"` // the output, or the error
	Code    int     `json:",omitempty"` // the exit code; 128 and more are signals
	Seconds float64 `json:",omitempty"` // since the guest's kernel started
}

// Sender sends frames. It is safe for concurrent use.
type Sender struct {
	mu  sync.Mutex
	out *json.Encoder
}

// NewSender returns a sender that writes to out.
func NewSender(out io.Writer) *Sender { return &Sender{out: json.NewEncoder(out)} }

// Send sends a frame as one line.
func (s *Sender) Send(f Frame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Encode(f)
}

// Receive calls take with each frame until the input ends.
func Receive(in io.Reader, take func(Frame)) error {
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return nil // A guest that died may have sent a partial line.
		}
		if err != nil {
			return err
		}
		var f Frame
		if err := json.Unmarshal(line, &f); err != nil {
			return fmt.Errorf("the guest sent %q, which is no frame: %w", line, err)
		}
		take(f)
	}
}
