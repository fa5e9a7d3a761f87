package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// writeCommand makes this program write a file of random data and print its progress and checksum, in the role of the
// workload, a process of another user.
const writeCommand = "write-as-workload"

// nobody is the user and the group of the workload, which has rights only through its supplementary group.
const nobody = 65534

// denied is the workload's exit code if it may not write.
const denied = 13

const mib = 1 << 20

// runWrite is the main function of the workload: it writes args[1] MiB to the new file args[0].
func runWrite(args []string) int {
	if len(args) != 2 {
		return 2
	}
	size, err := strconv.Atoi(args[1])
	if err == nil {
		err = writeRandom(args[0], size, os.Stdout)
	}
	switch {
	case errors.Is(err, os.ErrPermission):
		return denied
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// writeRandom writes and syncs a file, and prints the number of written MiB after each one, and the checksum at the
// end.
func writeRandom(path string, size int, out io.Writer) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o660)
	if err != nil {
		return err
	}
	sum, chunk := sha256.New(), make([]byte, mib)
	for i := range size {
		if _, err := rand.Read(chunk); err != nil {
			return errors.Join(err, file.Close())
		}
		sum.Write(chunk)
		if _, err := file.Write(chunk); err != nil {
			return errors.Join(err, file.Close())
		}
		fmt.Fprintln(out, i+1)
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	fmt.Fprintln(out, hex.EncodeToString(sum.Sum(nil)))
	return nil
}

// workload runs the workload with one supplementary group and returns the checksum that it printed. It fails with
// os.ErrPermission if the workload was not allowed to write.
func workload(ctx context.Context, s *step, path string, size int, group uint32) (string, error) {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", writeCommand, path, strconv.Itoa(size))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: nobody, Gid: nobody, Groups: []uint32{group}},
		Pdeathsig:  syscall.SIGKILL,
	}
	var trouble strings.Builder
	cmd.Stderr = &trouble
	output, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	last := ""
	for lines := bufio.NewScanner(output); lines.Scan(); {
		last = lines.Text()
		if _, err := strconv.Atoi(last); err == nil {
			s.progress("written %s of %d MiB", last, size)
		}
	}
	if err := cmd.Wait(); err != nil {
		if cmd.ProcessState.ExitCode() == denied {
			err = os.ErrPermission
		}
		return "", fmt.Errorf("user %d with group %d writes %s: %w %s", nobody, group, path, err, trouble.String())
	}
	return last, nil
}

// checksum returns the checksum of a file.
func checksum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // it was only read
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// sameData checks the checksum of a file.
func sameData(path, want string) error {
	got, err := checksum(path)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%s has sha256 %s, want %s", path, got, want)
	}
	return nil
}
