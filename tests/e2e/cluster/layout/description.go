package layout

import (
	"encoding/json"
	"fmt"
	"os"
)

// descriptionFile marks a folder as a cluster's data: no other folder is ever removed.
const descriptionFile = "cluster.json"

// Description is what a cluster was brought up with.
type Description struct {
	Nodes   int      // how many
	Port    int      // of the API server, on the loopback address of the host
	Store   string   // the folder outside the data that programs and images are used from
	Version string   // of Kubernetes
	Images  []string // archives that each node imports when it starts
}

// Describe writes the description, whole or not at all.
func (l Layout) Describe(d Description) error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(l.Path(descriptionFile), append(text, '\n'), 0o644)
}

// Description reads what the cluster was brought up with.
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

// WriteFile writes a file that is there whole or not at all.
func WriteFile(path string, text []byte, mode os.FileMode) error {
	if err := os.WriteFile(path+".new", text, mode); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// IsMarker reports whether the path is the file that marks the folder as a cluster's data.
func (l Layout) IsMarker(path string) bool { return path == l.Path(descriptionFile) }
