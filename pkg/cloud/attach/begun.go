package attach

import (
	"sync"
	"time"
)

// begun remembers which attachments were asked for so lately that the cloud may not show them yet.
type begun struct {
	settle time.Duration

	mu sync.Mutex
	at map[[2]string]time.Time // by volume and node
}

// note takes down an attachment, and forgets those that the cloud shows by now.
func (b *begun) note(volume, node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at == nil {
		b.at = map[[2]string]time.Time{}
	}
	for key, at := range b.at {
		if time.Since(at) > b.settle {
			delete(b.at, key)
		}
	}
	b.at[[2]string{volume, node}] = time.Now()
}

// forget is for an attachment of which the cloud has said how it ended.
func (b *begun) forget(volume, node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.at, [2]string{volume, node})
}

// left is for how long the cloud may still not show an attachment of the volume to the node; to any node if that is empty.
func (b *begun) left(volume, node string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	var left time.Duration
	for key, at := range b.at {
		if key[0] == volume && (node == "" || key[1] == node) {
			left = max(left, b.settle-time.Since(at))
		}
	}
	return left
}
