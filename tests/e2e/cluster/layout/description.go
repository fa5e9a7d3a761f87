package layout

import (
	"encoding/json"
	"fmt"
	"os"
)

// descriptionFile marks a folder as a cluster's data. A folder without it is never removed.
const descriptionFile = "cluster.json"

// Description holds the parameters with which a cluster was brought up.
type Description struct {
	Nodes   int      // the number of nodes
	Port    int      // of the API server, on the loopback address of the host
	Store   string   // the folder outside the data that holds programs and images
	Version string   // of Kubernetes
	Images  []string // archives that each node imports when it starts
}

// Describe writes the description atomically.
func (l Layout) Describe(d Description) error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(l.Path(descriptionFile), append(text, '\n'), 0o644)
}

// Description reads the cluster's description.
func (l Layout) Description() (Description, error) {
	var d Description
	text, err := os.ReadFile(l.Path(descriptionFile))
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("%s: %w", l.Path(descriptionFile), err)
	}
	return d, nil
}

// WriteFile writes a file atomically.
func WriteFile(path string, text []byte, mode os.FileMode) error {
	if err := os.WriteFile(path+".new", text, mode); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// IsMarker reports whether the path is the file that marks the folder as a cluster's data.
func (l Layout) IsMarker(path string) bool { return path == l.Path(descriptionFile) }
