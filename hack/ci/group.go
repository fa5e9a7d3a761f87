package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// toReport is how long the programs of a step may still take after they were told to end, for example to write their
// report.
const toReport = 10 * time.Second

// keep ends the process group if this process ends without having released it, because a SIGKILL leaves it no time for
// that. The keeper waits for the end of a pipe that only this process can write to.
func keep(group int) (release func(), err error) {
	end, own, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot watch over the step: %w", err)
	}
	defer func() { _ = end.Close() }() // The keeper has it.
	const script = `read -r; kill -TERM -- "-$1"; sleep 5; kill -KILL -- "-$1"`
	keeper := exec.CommandContext(context.Background(), "bash", "-c", script, "keeper", strconv.Itoa(group))
	keeper.Stdin = end
	keeper.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := keeper.Start(); err != nil {
		_ = own.Close()
		return nil, fmt.Errorf("cannot watch over the step: %w", err)
	}
	return func() {
		_ = keeper.Process.Kill() // Before it sees the end of the pipe.
		_ = keeper.Wait()
		_ = own.Close()
	}, nil
}

// endGroup waits for the rest of a process group that was told to end, and kills it after a while.
func endGroup(group int) {
	patience := time.After(toReport)
	for pause := time.Tick(20 * time.Millisecond); !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH); {
		select {
		case <-pause:
		case <-patience:
			_ = syscall.Kill(-group, syscall.SIGKILL) // It had its time.
			return
		}
	}
}
