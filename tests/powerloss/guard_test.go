package powerloss

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// guardWord is the argument that makes this program a guard.
const guardWord = "guard-drives"

// guard is a process that aborts the drives' FUSE connection when the test is killed. The kernel aborts it when the
// last descriptor of the connection is closed. A thread of the test that waits for a drive in mount(2) prevents that:
// the drive is no longer served, and nothing interrupts the thread. It would stay forever, and so would every process
// that makes a request to the loop device.
type guard struct {
	control string // the mount point of the kernel's connection files
	orders  io.WriteCloser
	answers *bufio.Reader
}

// newGuard starts a guard until the end of the test.
func newGuard(t *testing.T) *guard {
	t.Helper()
	g := &guard{control: t.TempDir()}
	must(t, unix.Mount("fusectl", g.control, "fusectl", 0, ""))
	t.Cleanup(func() { must(t, unix.Unmount(g.control, unix.MNT_DETACH)) })
	started, stop, ended := make(chan error), make(chan struct{}), make(chan error)
	go func() {
		runtime.LockOSThread() // The guard gets a signal when this thread ends, which waits for no drive.
		defer runtime.UnlockOSThread()
		cmd := exec.CommandContext(context.Background(), "/proc/self/exe", guardWord)
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setsid: true}
		err := g.start(cmd)
		started <- err
		if err == nil {
			<-stop
			ended <- errors.Join(g.orders.Close(), cmd.Wait())
		}
	}()
	must(t, <-started)
	t.Cleanup(func() {
		close(stop)
		must(t, <-ended)
	})
	return g
}

func (g *guard) start(cmd *exec.Cmd) error {
	orders, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	g.orders, g.answers = orders, bufio.NewReader(answers)
	return cmd.Start()
}

// watch makes the guard responsible for the FUSE mount. The connection's number is that of its device.
func (g *guard) watch(dir string) error {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return err
	}
	path := filepath.Join(g.control, strconv.Itoa(int(unix.Minor(stat.Dev))), "abort")
	if _, err := fmt.Fprintln(g.orders, path); err != nil {
		return err
	}
	answer, err := g.answers.ReadString('\n')
	if err == nil && answer != "watched\n" {
		err = fmt.Errorf("the guard cannot watch %s: %s", path, answer)
	}
	return err
}

// runGuard is the main function of the guard. It opens the connections' abort files in advance, so that it never aborts
// another connection that gets the number later.
func runGuard(in io.Reader, out io.Writer) {
	killed := make(chan os.Signal, 1)
	signal.Notify(killed, syscall.SIGTERM)
	orders := make(chan string)
	go func() {
		defer close(orders)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			orders <- lines.Text()
		}
	}()
	var watched []*os.File
	for {
		select {
		case path, ok := <-orders:
			if !ok { // The test has ended normally.
				return
			}
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				fmt.Fprintln(out, err)
				continue
			}
			watched = append(watched, file)
			fmt.Fprintln(out, "watched")
		case <-killed:
			for _, file := range watched {
				_, _ = file.WriteString("1") // A connection that has ended needs no abort.
			}
			return
		}
	}
}
