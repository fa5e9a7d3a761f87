package ec2

import (
	"math/rand/v2"
	"time"
)

// Troubles befall the cloud itself, at random.
type Troubles struct {
	Stuck  int           // so many of a thousand transitions
	For    time.Duration // take so much longer
	Doomed int           // so many of a thousand volumes end in state error
	Seed   uint64
}

// troubled reports whether the next thing of which so many in a thousand meet a trouble is one of them.
func (s *Server) troubled(perThousand int) bool {
	if perThousand == 0 {
		return false
	}
	if s.dice().IntN(1000) >= perThousand {
		return false
	}
	s.troubles++
	return true
}

// dice decides what happens at random; s.mu is held.
func (s *Server) dice() *rand.Rand {
	if s.random == nil {
		s.random = rand.New(rand.NewPCG(s.config.Troubles.Seed, 1))
	}
	return s.random
}

// Troubled counts what has met a trouble.
func (s *Server) Troubled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.troubles
}

// Calm ends the troubles. What is stuck stays so for its time.
func (s *Server) Calm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config.Troubles = Troubles{}
}
