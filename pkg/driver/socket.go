package driver

import (
	"net"
	"os"
	"sync"
)

// ownSocket is a listener that removes its own socket, and no other, when it is closed. net.UnixListener would remove
// any file that is at the path by then.
type ownSocket struct {
	*net.UnixListener

	path  string
	made  os.FileInfo // its file, whose inode is not used again while the listener is open
	close sync.Once
}

// listenAt makes a socket at a path and listens on it.
func listenAt(path string) (*ownSocket, error) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	made, err := os.Lstat(path)
	if err != nil { // Somebody has removed it.
		_ = listener.Close()
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	return &ownSocket{UnixListener: listener, path: path, made: made}, nil
}

// Close removes the socket and closes the listener.
func (s *ownSocket) Close() error {
	s.close.Do(func() {
		if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.made) {
			_ = os.Remove(s.path) // A socket that is left is replaced at the next start.
		}
	})
	return s.UnixListener.Close()
}
