package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// markName is the environment variable that marks a step. Its processes inherit the variable, also those that leave the
// step's process group and session, and those whose parent ends.
const markName = "CI_STEP"

// process is a running process. Its start distinguishes it from a later process with the same ID.
type process struct {
	id, parent  int
	start, name string
	marked      bool
}

// endLeft ends the processes of a step that still run after its process group: they would run beside the next steps. It
// returns their IDs and names, without those of their descendants.
func endLeft(mark string) (names []string) {
	left := leftBy(mark, nil)
	for _, p := range left {
		if !slices.ContainsFunc(left, func(other process) bool { return other.id == p.parent }) {
			names = append(names, fmt.Sprintf("%d %.100s", p.id, p.name))
		}
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		left = endBy(signal, mark, left)
	}
	return names
}

// endBy sends a signal to processes, and returns those that still run after a while.
func endBy(signal syscall.Signal, mark string, left []process) []process {
	for _, p := range left {
		_ = syscall.Kill(p.id, signal) // It may have ended.
	}
	patience := time.After(toReport)
	for pause := time.Tick(20 * time.Millisecond); len(left) > 0; left = leftBy(mark, left) {
		select {
		case <-pause:
		case <-patience:
			return left
		}
	}
	return nil
}

// leftBy returns the processes with the mark, those of the known ones that still run, and the descendants of both: a
// process may run another one without its own environment.
func leftBy(mark string, known []process) (left []process) {
	all, found := processes(mark), map[int]bool{}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			same := func(k process) bool { return k.id == p.id && k.start == p.start }
			if !found[p.id] && (p.marked || found[p.parent] || slices.ContainsFunc(known, same)) {
				found[p.id], grown = true, true
				left = append(left, p)
			}
		}
	}
	return left
}

// processes returns the running processes.
func processes(mark string) (all []process) {
	entries, _ := os.ReadDir("/proc") // Without it there are none to end.
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, runs := processOf(id, mark); runs {
			all = append(all, p)
		}
	}
	return all
}

// processOf returns a process, and whether it runs: a zombie does not.
func processOf(id int, mark string) (p process, runs bool) {
	folder := fmt.Sprintf("/proc/%d/", id)
	stat, _ := os.ReadFile(folder + "stat") // It is empty if the process has ended.
	at := bytes.LastIndexByte(stat, ')')
	if at < 0 {
		return process{}, false
	}
	_, name, _ := strings.Cut(string(stat[:at]), "(")
	// From the third field of proc_pid_stat(5): the state, the parent, and so on.
	fields := strings.Fields(string(stat[at+1:]))
	const parent, start = 4 - 3, 22 - 3
	if len(fields) <= start || fields[0] == "Z" || fields[0] == "X" {
		return process{}, false
	}
	p = process{id: id, start: fields[start], name: name}
	p.parent, _ = strconv.Atoi(fields[parent]) // The kernel writes a number.
	environ, _ := os.ReadFile(folder + "environ")
	p.marked = slices.Contains(strings.Split(string(environ), "\x00"), mark)
	arguments, _ := os.ReadFile(folder + "cmdline")
	if words := strings.Fields(string(bytes.ReplaceAll(arguments, []byte{0}, []byte{' '}))); len(words) > 0 {
		p.name = strings.Join(words, " ")
	}
	return p, true
}
