package nfs

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// writing appends to a log in a volume, until stop is called.
func (w *world) writing(volume string) (stop func()) {
	w.Helper()
	log, err := os.OpenFile(w.path(volume, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	w.must(err)
	ended := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ended:
				return
			case <-tick.C:
				_, _ = fmt.Fprintln(log, i)
			}
		}
	})
	return sync.OnceFunc(func() { close(ended); writer.Wait(); w.must(log.Close()) })
}
