package access

import (
	"fmt"
	"os"
	"strings"
)

// NodeFiles returns the root of a node's files as seen from this process, for a socket that a test calls.
func (c *Cluster) NodeFiles(name string) (string, error) {
	pid, err := os.ReadFile(c.layout.NodeProcess(name))
	if err != nil {
		return "", fmt.Errorf("there is no node %s, but %s: %w", name, strings.Join(c.Nodes(), ", "), err)
	}
	return fmt.Sprintf("/proc/%d/root/proc/%s/root", c.process.PID, pid), nil
}
