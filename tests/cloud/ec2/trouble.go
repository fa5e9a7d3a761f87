package ec2

import (
	"math/rand/v2"
	"time"
)

// Troubles are random failures of the cloud itself.
type Troubles struct {
	Stuck  int           // the number of transitions per thousand that take longer
	For    time.Duration // the additional time of a stuck transition
	Doomed int           // the number of volumes per thousand that end in state error
	Seed   uint64
}

// troubled decides at random, with the given chance in a thousand, whether the next operation meets a trouble.
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

// dice returns the source of randomness; s.mu is held.
func (s *Server) dice() *rand.Rand {
	if s.random == nil {
		s.random = rand.New(rand.NewPCG(s.config.Troubles.Seed, 1))
	}
	return s.random
}

// Troubled counts the operations that met a trouble.
func (s *Server) Troubled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.troubles
}

// Calm ends the troubles. Stuck transitions keep their delay.
func (s *Server) Calm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config.Troubles = Troubles{}
}
