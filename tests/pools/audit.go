package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// auditLog is the part of the API server's log of requests from a moment on.
type auditLog struct {
	path string
	from int64
}

// request is a line of the log.
type request struct {
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

func (p *plane) audit() (auditLog, error) {
	path := filepath.Join(p.folder, "audit.log")
	info, err := os.Stat(path)
	if err != nil {
		return auditLog{}, err
	}
	return auditLog{path: path, from: info.Size()}, nil
}

// print prints the new requests, divided by the number of claims.
func (a auditLog) print(claims int) error {
	counts, err := a.counts()
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		if share := float64(counts[key]) / float64(claims); share >= 0.02 {
			fmt.Printf("    %6.2f  %s\n", share, key)
		}
	}
	return err
}

// counts returns the number of new requests, by program, verb, resource and answer.
func (a auditLog) counts() (map[string]int, error) {
	file, err := os.Open(a.path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // It was read only.
	if _, err := file.Seek(a.from, io.SeekStart); err != nil {
		return nil, err
	}
	counts := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r request
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue // The line is still being written.
		}
		counts[strings.Join([]string{who(r.UserAgent), r.Verb, r.ObjectRef.Resource + "/" + r.ObjectRef.Subresource,
			fmt.Sprint(r.ResponseStatus.Code)}, " ")]++
	}
	return counts, lines.Err()
}

// who returns the program, and for Kubernetes' controllers also the controller.
func who(agent string) string {
	program, _, _ := strings.Cut(agent, "/")
	if _, account, ok := strings.Cut(agent, "system:serviceaccount:kube-system:"); ok {
		return program + ":" + account
	}
	return program
}
