package nfsdriver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/all"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/driver"
)

// A controller in its own process starts with all capabilities, drops those that are not named, and executes the
// program again.
const (
	confineWord  = "confine"
	confinedWord = "confined"
	serving      = "serving"
)

// confinedMain must be called first in TestMain. In the process of a controller it does not return.
func confinedMain() {
	if len(os.Args) != 4 {
		return
	}
	var err error
	switch os.Args[1] {
	case confineWord:
		err = confine(strings.Split(os.Args[2], ","), os.Args[3])
	case confinedWord:
		err = control(os.Args[3])
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the controller:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// confine turns this process into one that has only the given capabilities, like a container's first process
// (capabilities(7)).
func confine(keep []string, dir string) error {
	runtime.LockOSThread() // The thread that drops capabilities must be the one that continues.
	known := capabilityNumbers()
	for number := range uintptr(unix.CAP_LAST_CAP + 1) {
		if slices.ContainsFunc(keep, func(name string) bool { n, is := known[name]; return is && n == number }) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, number, 0, 0, 0); err != nil {
			return fmt.Errorf("giving up capability %d: %w", number, err)
		}
	}
	return syscall.Exec("/proc/self/exe", []string{os.Args[0], confinedWord, strings.Join(keep, ","), dir}, os.Environ())
}

func capabilityNumbers() map[string]uintptr {
	return map[string]uintptr{
		"SYS_ADMIN": unix.CAP_SYS_ADMIN, "FOWNER": unix.CAP_FOWNER, "MKNOD": unix.CAP_MKNOD,
	}
}

// control serves an nfs controller, with its socket in the directory, until it receives SIGTERM.
func control(dir string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	definition, err := all.Registry().Lookup("nfs")
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	instance, err := definition.Open(ctx, backends.Options{
		Driver: "nfs.csi.stowage.dev", DataDir: dir, NodeID: "node-1", Config: definition.NewConfig(), Log: log,
	})
	if err != nil {
		return err
	}
	instance.Node = nil
	defer func() { err = errors.Join(err, backendtest.Close(ctx, instance)) }()
	server, err := driver.NewServer(ctx, driver.Config{
		Name: "nfs.csi.stowage.dev", Version: "test", Definition: definition, Instance: instance,
		StateDir: filepath.Join(dir, "node"),
		Metrics:  driver.NewMetrics("nfs.csi.stowage.dev", "test"), Log: log,
	})
	if err != nil {
		return err
	}
	listener, err := driver.Listen(ctx, socketIn(dir))
	if err != nil {
		return err
	}
	fmt.Println(serving)
	return server.Serve(ctx, listener, time.Second)
}

func socketIn(dir string) string { return "unix://" + filepath.Join(dir, "csi.sock") }

// controller starts a controller with only these capabilities until the test ends.
func (s *site) controller(capabilities []string) *grpc.ClientConn {
	s.Helper()
	dir, err := os.MkdirTemp("", "c-")
	s.must(err)
	s.Cleanup(func() { s.check(os.RemoveAll(dir)) })
	cmd := exec.CommandContext(context.WithoutCancel(s.Context()), "/proc/self/exe", confineWord,
		strings.Join(capabilities, ","), dir)
	cmd.Stderr = os.Stderr
	output, err := cmd.StdoutPipe()
	s.must(err)
	s.must(cmd.Start())
	s.Cleanup(func() { s.check(errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())) })
	lines := bufio.NewReader(output)
	if word, err := lines.ReadString('\n'); strings.TrimSpace(word) != serving {
		s.Fatalf("the controller did not start: %q, %v", word, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // It prints nothing more of interest.
	conn, err := grpc.NewClient(socketIn(dir), grpc.WithTransportCredentials(insecure.NewCredentials()))
	s.must(err)
	s.Cleanup(func() { s.check(conn.Close()) })
	return conn
}
