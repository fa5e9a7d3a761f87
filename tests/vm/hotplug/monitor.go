package hotplug

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/stowage-csi/stowage/tests/vm/inside"
	"github.com/stowage-csi/stowage/tests/vm/internal/wire"
)

// answerLimit is the limit for QEMU's answers, and for the guest to release a disk.
const answerLimit = 2 * time.Minute

// dialLimit is the limit for one attempt to connect. TCP repeats its first packet four times within it.
const dialLimit = 15 * time.Second

// Machine is a connection to QEMU's monitor. It is not safe for concurrent use.
type Machine struct {
	conn   net.Conn
	reader *bufio.Reader
	last   int      // the number of the last command
	gone   []string // devices that were deleted, according to events
}

// message is a message of QEMU: an answer, an event, or the greeting. See docs/interop/qmp-spec in QEMU's sources.
type message struct {
	ID    int             `json:"id"`
	OK    json.RawMessage `json:"return"`
	Error *struct {
		Class string `json:"class"`
		Desc  string `json:"desc"`
	} `json:"error"`
	Event string `json:"event"`
	Data  struct {
		Device string `json:"device"`
	} `json:"data"`
}

// Connect connects to the monitor. Outside the guest it fails.
func Connect(ctx context.Context) (*Machine, error) {
	if err := inside.Check(); err != nil {
		return nil, err
	}
	conn, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	m := &Machine{conn: conn, reader: bufio.NewReader(conn)}
	// The monitor does not distinguish connections: this command is an error on all but the first.
	err = m.command("qmp_capabilities", nil)
	if err != nil && !errors.Is(err, errRefused) {
		return nil, errors.Join(err, conn.Close())
	}
	return m, nil
}

// dial connects to the monitor, if necessary in several attempts. QEMU's network keeps connections that have ended
// for a while, and one of them can swallow all packets of a new one from the same port. Each attempt has another port.
func dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	for {
		conn, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, "tcp4", wire.Monitor)
		late, isNet := errors.AsType[net.Error](err)
		if !isNet || !late.Timeout() || ctx.Err() != nil {
			return conn, err
		}
	}
}

// Close ends the connection. Disks stay plugged in.
func (m *Machine) Close() error { return m.conn.Close() }

// errRefused reports that QEMU answered with an error.
var errRefused = errors.New("QEMU refuses")

// command runs a QEMU command, and waits for its answer.
func (m *Machine) command(name string, arguments map[string]any) error {
	m.last++
	request := map[string]any{"execute": name, "id": m.last}
	if arguments != nil {
		request["arguments"] = arguments
	}
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if _, err := m.conn.Write(append(text, '\n')); err != nil {
		return err
	}
	for {
		answer, err := m.read()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		switch {
		case answer.ID != m.last:
		case answer.Error != nil:
			return fmt.Errorf("%w: %s: %s: %s", errRefused, name, answer.Error.Class, answer.Error.Desc)
		default:
			return nil
		}
	}
}

// read reads the next message, and records deleted devices.
func (m *Machine) read() (message, error) {
	var got message
	if err := m.conn.SetReadDeadline(time.Now().Add(answerLimit)); err != nil {
		return got, err
	}
	line, err := m.reader.ReadBytes('\n')
	if err != nil {
		return got, err
	}
	if err := json.Unmarshal(line, &got); err != nil {
		return got, fmt.Errorf("QEMU says %q: %w", line, err)
	}
	if got.Event == "DEVICE_DELETED" && got.Data.Device != "" {
		m.gone = append(m.gone, got.Data.Device)
	}
	return got, nil
}
