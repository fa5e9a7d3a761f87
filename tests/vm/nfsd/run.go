package nfsd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// command runs a program. Its output is part of the error.
func command(ctx context.Context, argv ...string) error {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w: %s", argv, err, out)
	}
	return nil
}

// daemon starts a program in the foreground, and waits until it listens.
func daemon(ctx context.Context, port int, argv ...string) (*exec.Cmd, error) {
	// It runs until it is stopped, beyond the call that started it.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(answerLimit)
	for {
		// Stimulus: one attempt of many; the program may not listen yet.
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err == nil {
			return cmd, conn.Close()
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		case <-limit:
		}
		_ = cmd.Process.Kill() // It may have ended already.
		return nil, fmt.Errorf("%s does not listen on port %d: %w", argv[0], port, errors.Join(err, cmd.Wait()))
	}
}
