package bundle

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/pkg/doctor"
)

// Logs opens the log of a container.
type Logs func(ctx context.Context, namespace, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error)

const (
	mostLines = 20_000  // the last lines of a container's log
	mostBytes = 8 << 20 // in these lines
)

// archive is a bundle that is being written.
type archive struct {
	tar   *tar.Writer
	now   time.Time
	notes []string
}

// Write writes the bundle of a cluster, a gzipped tar. The bundle notes which logs and kinds could not be read, and
// Write does not fail for them.
func Write(ctx context.Context, out io.Writer, c *doctor.Cluster, logs Logs, now time.Time) error {
	packed := gzip.NewWriter(out)
	a := &archive{tar: tar.NewWriter(packed), now: now}
	a.notes = append(a.notes, "collected at "+now.UTC().Format(time.RFC3339))
	for _, step := range []func() error{
		func() error { return a.findings(c) },
		func() error { return a.objects(c) },
		func() error { return a.logs(ctx, c, logs) },
		func() error { return a.file("notes.txt", []byte(strings.Join(a.notes, "\n")+"\n")) },
		a.tar.Close, packed.Close,
	} {
		if err := step(); err != nil {
			return fmt.Errorf("write the bundle: %w", err)
		}
	}
	return nil
}

func (a *archive) file(name string, content []byte) error {
	header := &tar.Header{Name: "stowage-bundle/" + name, Mode: 0o600, Size: int64(len(content)), ModTime: a.now,
		Typeflag: tar.TypeReg}
	if err := a.tar.WriteHeader(header); err != nil {
		return err
	}
	_, err := a.tar.Write(content)
	return err
}

// findings writes the doctor's findings. They quote messages of others.
func (a *archive) findings(c *doctor.Cluster) error {
	var out bytes.Buffer
	if err := doctor.Write(&out, c.All()); err != nil {
		return err
	}
	return a.file("doctor.txt", []byte(text(out.String())))
}

func (a *archive) objects(c *doctor.Cluster) error {
	for _, err := range c.Own.Unread {
		a.notes = append(a.notes, text(err.Error()))
	}
	for _, l := range lists(c) {
		cleaned := make([]any, 0, len(l.items))
		for _, item := range l.items {
			o, err := l.clean.object(item)
			if err != nil {
				return err
			}
			cleaned = append(cleaned, o)
		}
		encoded, err := json.MarshalIndent(cleaned, "", " ")
		if err != nil {
			return err
		}
		if err := a.file("objects/"+l.name+".json", encoded); err != nil {
			return err
		}
	}
	return nil
}

// logs writes the logs of all containers of Stowage's pods, and of their previous runs.
func (a *archive) logs(ctx context.Context, c *doctor.Cluster, logs Logs) error {
	for _, p := range c.OwnPods() {
		restarted := map[string]bool{}
		for _, s := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
			restarted[s.Name] = s.RestartCount > 0
		}
		for _, container := range append(p.Spec.InitContainers, p.Spec.Containers...) {
			for _, previous := range []bool{false, true} {
				if previous && !restarted[container.Name] {
					continue
				}
				if err := a.log(ctx, &p, container.Name, previous, logs); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (a *archive) log(ctx context.Context, p *corev1.Pod, container string, previous bool, logs Logs) error {
	name := fmt.Sprintf("logs/%s/%s/%s.log", p.Namespace, p.Name, container)
	if previous {
		name = strings.TrimSuffix(name, ".log") + ".previous.log"
	}
	content, err := read(ctx, p, container, previous, logs)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		a.notes = append(a.notes, fmt.Sprintf("%s is not complete: %s", name, text(err.Error())))
	}
	return a.file(name, content)
}

// read returns the end of a log, without possible secrets. It does not let the kubelet limit the bytes, because the
// kubelet would cut off the end.
func read(ctx context.Context, p *corev1.Pod, container string, previous bool, logs Logs) ([]byte, error) {
	lines := int64(mostLines)
	from, err := logs(ctx, p.Namespace, p.Name, &corev1.PodLogOptions{Container: container, Previous: previous,
		TailLines: &lines, Timestamps: true})
	if err != nil {
		return nil, err
	}
	end, left := tail{}, 0
	hide := speaking()
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, mostBytes)
	for scanner.Scan() {
		left += end.add(hidden(hide, scanner.Text()) + "\n")
	}
	err = errors.Join(scanner.Err(), from.Close())
	if left > 0 {
		err = errors.Join(fmt.Errorf("its first %d lines are left out, since it is longer than %d bytes", left, mostBytes),
			err)
	}
	return []byte(strings.Join(end.lines, "")), err
}

// tail has the last lines of a log, with at most mostBytes in total.
type tail struct {
	lines []string
	bytes int
}

// add adds a line, and returns how many lines it has dropped for it.
func (t *tail) add(line string) (left int) {
	t.lines = append(t.lines, line)
	t.bytes += len(line)
	for ; t.bytes > mostBytes; left++ {
		t.bytes -= len(t.lines[left])
	}
	t.lines = t.lines[left:]
	return left
}
