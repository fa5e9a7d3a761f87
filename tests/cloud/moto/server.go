package moto

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// startLimit is the limit for moto's first answer, on a busy machine.
const startLimit = 2 * time.Minute

// Server is a moto_server on its own loopback port.
type Server struct {
	URL string

	process *exec.Cmd
	stop    context.CancelFunc
	ended   chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

// Start starts moto_server in a root filesystem that Root returned. The kernel ends it when this process dies.
func Start(ctx context.Context, root string) (*Server, error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{process: exec.CommandContext(ctx, "/usr/bin/python3", "/usr/bin/moto_server", "-H", "127.0.0.1", "-p",
		"0"), stop: stop, ended: make(chan struct{})}
	// The caller's environment is not inherited: moto must find no credentials and no proxy. Moto's default images have a
	// thousand snapshots, which it would search each time.
	s.process.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1",
		"MOTO_EC2_LOAD_DEFAULT_AMIS=false"}
	s.process.Dir = "/"
	s.process.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	said, err := s.process.StderrPipe()
	if err != nil {
		stop()
		return nil, err
	}
	started, address := make(chan error, 1), make(chan string, 1)
	go s.run(said, started, address)
	if err := <-started; err != nil {
		stop()
		return nil, fmt.Errorf("moto_server in %s: %w", root, err)
	}
	select {
	case s.URL = <-address:
		err = s.answers(ctx)
	case <-s.ended:
		err = errors.New("it has ended")
	case <-time.After(startLimit):
		err = fmt.Errorf("it does not listen within %v", startLimit)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("moto_server does not start: %w\n%s", err, s.Log())
	}
	return s, nil
}

// run stays on one thread: for the kernel, the death of the thread that started a child is the death of the parent
// (prctl(2), PR_SET_PDEATHSIG).
func (s *Server) run(said io.Reader, started chan<- error, address chan<- string) {
	runtime.LockOSThread()
	defer close(s.ended)
	err := s.process.Start()
	if started <- err; err != nil {
		return
	}
	listens := regexp.MustCompile(`Running on (http://127\.0\.0\.1:\d+)`)
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if found := listens.FindStringSubmatch(lines.Text()); found != nil {
			address <- found[1]
		}
		s.note(lines.Bytes())
	}
	_ = s.process.Wait() // It is killed by a signal.
}

// note keeps the end of moto's output, which has a line for each request.
func (s *Server) note(line []byte) {
	const most = 64 << 10
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.Write(line)
	s.log.WriteByte('\n')
	if over := s.log.Len() - most; over > 0 {
		s.log.Next(over)
	}
}

// answers waits for the first answer, for which moto loads its data about EC2.
func (s *Server) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/moto-api/data.json", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// Log returns the end of moto's output.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// Close ends moto and waits for its end.
func (s *Server) Close() {
	s.stop()
	<-s.ended
}
