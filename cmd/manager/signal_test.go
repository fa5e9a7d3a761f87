package main

import (
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// asProgram in the environment turns the test's program into the manager.
const asProgram = "STOWAGE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	flag.Bool("update", false, "write docs/manager.md")
	os.Exit(m.Run())
}

// TestSecondSignal checks that a second signal ends a leading manager. After the first signal, the API server delays
// the release of the manager's lease.
func TestSecondSignal(t *testing.T) {
	leads := make(chan struct{})
	tell := sync.OnceFunc(func() { close(leads) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, _ := io.ReadAll(r.Body) // Only then does the server see that the client is gone.
		switch lease := strings.Contains(r.URL.Path, "/leases"); {
		case lease && r.Method == http.MethodGet:
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
		case lease && r.Method == http.MethodPost:
			w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write(body)
		default:
			if r.Method == http.MethodGet {
				tell() // Its controllers begin; an event of the election may come before.
			}
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	manager := exec.CommandContext(t.Context(), "/proc/self/exe", "recycler", "--kubeconfig="+kubeconfig(t, server),
		"--namespace=ns", "--image=x", "--drivers=x")
	manager.Env, manager.Stderr = append(os.Environ(), asProgram+"=1"), os.Stderr
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = manager.Process.Kill() }() // The server waits for its clients.
	ended := make(chan error, 1)
	go func() { ended <- manager.Wait() }()
	select {
	case <-leads:
	case <-time.After(2 * time.Minute):
		t.Fatal("the manager does not lead")
	case err := <-ended:
		t.Fatalf("the manager ended with %v before it led", err)
	}
	// Two signals at once may be one for the process.
	for tick, late := time.Tick(50*time.Millisecond), time.After(2*time.Minute); ; {
		if err := manager.Process.Signal(syscall.SIGTERM); err != nil {
			t.Log(err)
		}
		select {
		case <-tick:
		case <-late:
			t.Fatal("the manager is still there")
		case err := <-ended:
			status, ok := manager.ProcessState.Sys().(syscall.WaitStatus)
			if !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM {
				t.Errorf("the manager ended with %v; want the second signal, and not the end of what holds it", err)
			}
			return
		}
	}
}
