package adversary

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// drivers are the driver's processes: one, or a controller and a node.
type drivers struct {
	world   *world
	alive   sync.RWMutex
	config  string
	files   uint64 // the limit of open files of the next start
	control *process
	nodes   *process
	count   int
	pods    int           // the number of controllers: each has its own data directory, which a restart keeps
	over    chan struct{} // closed when another controller takes over
}

// takeover is closed when another controller takes over from the current one.
func (d *drivers) takeover() <-chan struct{} {
	d.alive.RLock()
	defer d.alive.RUnlock()
	return d.over
}

// process is one run of a driver.
type process struct {
	orders orders
	cmd    *exec.Cmd
	log    string
	done   chan struct{}
	conn   *grpc.ClientConn
}

// startAll starts the processes that the setup needs.
func (d *drivers) startAll(config string) (err error) {
	d.config, d.over = config, make(chan struct{})
	if !d.world.setup.Apart {
		d.control, err = d.start(both)
		d.nodes = d.control
		return err
	}
	if !d.world.setup.Alone {
		if d.nodes, err = d.start(node); err != nil {
			return err
		}
	}
	d.control, err = d.start(controller)
	return err
}

// start starts a process and waits until it answers.
func (d *drivers) start(r role) (*process, error) {
	d.count++
	o := orders{
		Setup: d.world.setup.Name, Root: d.world.workspace.Dir, Role: r, Config: d.config, Files: d.files,
		DataDir:  d.world.workspace.Data(),
		Endpoint: "unix://" + d.world.path(fmt.Sprintf("csi-%d.sock", d.count)),
	}
	if r == controller {
		o.DataDir = d.world.path(fmt.Sprintf("controller-%d", d.pods))
	}
	p := &process{orders: o, log: d.world.path(fmt.Sprintf("driver-%d.log", d.count)), done: make(chan struct{})}
	begun := make(chan error, 1)
	go p.run(begun)
	if err := <-begun; err != nil {
		return nil, err
	}
	if err := p.ready(); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

// run starts the process and waits for its end on one thread, because the process is killed with that thread
// (PR_SET_PDEATHSIG).
func (p *process) run(begun chan<- error) {
	runtime.LockOSThread()
	defer close(p.done)
	text, err := json.Marshal(p.orders)
	if err != nil {
		begun <- err
		return
	}
	log, err := os.Create(p.log)
	if err != nil {
		begun <- err
		return
	}
	defer log.Close() //nolint:errcheck // the child has it
	p.cmd = exec.CommandContext(context.Background(), "/proc/self/exe", serveWord, string(text))
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err = p.cmd.Start(); err == nil {
		begun <- nil
		err = p.cmd.Wait()
	} else {
		begun <- err
	}
	_ = err // of a killed process
}

// ready waits for the first answer.
func (p *process) ready() (err error) {
	p.conn, err = grpc.NewClient(p.orders.Endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: time.Millisecond, Multiplier: 1.2, MaxDelay: 20 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	go func() {
		select {
		case <-p.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	_, err = csi.NewIdentityClient(p.conn).Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("the driver does not serve: %w: %s", err, p.tail())
	}
	return nil
}

func (p *process) tail() string {
	text, err := os.ReadFile(p.log)
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-3):], []byte(" | "))) + fmt.Sprint(cmp.Or(err, errors.New("")))
}

// kill ends a process at once.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	<-p.done
	if p.conn != nil {
		_ = p.conn.Close() // it has ended
	}
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// killAll ends all.
func (d *drivers) killAll() {
	for _, p := range []*process{d.control, d.nodes} {
		if p != nil && p.cmd != nil {
			p.kill()
		}
	}
	d.control, d.nodes = nil, nil
}

// restart kills all processes, calls between, and starts them again. Calls wait while there is no driver.
func (d *drivers) restart(config string, between func() error) error {
	d.alive.Lock()
	defer d.alive.Unlock()
	d.killAll()
	prepared := between()
	return errors.Join(d.startAll(config), prepared)
}

// controls returns the client of the controller, and uses that of the node. A call goes to the process that runs when
// it is made.
func (d *drivers) controls() csi.ControllerClient {
	d.alive.RLock()
	defer d.alive.RUnlock()
	return csi.NewControllerClient(d.control.connection())
}

func (d *drivers) groups() csi.GroupControllerClient {
	d.alive.RLock()
	defer d.alive.RUnlock()
	return csi.NewGroupControllerClient(d.control.connection())
}

func (d *drivers) uses() csi.NodeClient {
	d.alive.RLock()
	defer d.alive.RUnlock()
	return csi.NewNodeClient(d.nodes.connection())
}

// connection returns the connection to the process; if there is none, calls fail.
func (p *process) connection() grpc.ClientConnInterface {
	if p == nil || p.conn == nil {
		return nowhere{}
	}
	return p.conn
}

// nowhere is a connection to a driver that did not start.
type nowhere struct{ grpc.ClientConnInterface }

// Invoke fails, because there is no driver.
func (nowhere) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return status.Error(codes.Unavailable, "there is no driver")
}
