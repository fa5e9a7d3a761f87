package powerloss

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The marks that a user writes to a volume: pages spread over an image, files in a directory.
const (
	imageMarks = 8
	imageGap   = mib / imageMarks
	fileMarks  = 3
	folder     = "folder"
)

// mark returns a page that identifies itself.
func mark(label string, n int) []byte {
	line := fmt.Appendf(nil, "%s mark %d\n", label, n)
	return bytes.Repeat(line, pageSize/len(line)+1)[:pageSize]
}

// labelOf returns the label of a mark, an empty string for zeros, and "?" for any other data.
func labelOf(data []byte, n int) string {
	label, _, _ := strings.Cut(string(data[:min(len(data), 64)]), " ")
	switch {
	case len(data) == pageSize && bytes.Equal(data, make([]byte, pageSize)):
		return ""
	case len(data) == pageSize && bytes.Equal(data, mark(label, n)):
		return label
	}
	return "?"
}

// fillImage writes marks to an image, and syncs it.
func fillImage(path, label string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	for n := range imageMarks {
		_, write := file.WriteAt(mark(label, n), int64(n)*imageGap)
		err = errors.Join(err, write)
	}
	return errors.Join(err, file.Sync(), file.Close())
}

// fillDirectory writes marks to files, and syncs the files and their directories.
func fillDirectory(path, label string) error {
	sub := filepath.Join(path, folder)
	if err := os.Mkdir(sub, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	for n := range fileMarks {
		if err := fillFile(markFile(path, n), mark(label, n)); err != nil {
			return err
		}
	}
	return errors.Join(syncDir(sub), syncDir(path))
}

func markFile(path string, n int) string {
	if n > 0 {
		path = filepath.Join(path, folder)
	}
	return filepath.Join(path, fmt.Sprintf("mark-%d", n))
}

func fillFile(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(data, 0)
	return errors.Join(err, file.Sync(), file.Close())
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// trouble describes an error without the path, which differs between drives.
func trouble(err error) string {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		err = e.Err
	}
	return "unreadable: " + err.Error()
}

// readContent returns the label of the marks in a volume or snapshot, or a description of its other content.
func readContent(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return trouble(err)
	}
	if !info.IsDir() {
		return readImage(path)
	}
	return readDirectory(path)
}

func readImage(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return trouble(err)
	}
	defer file.Close()
	var labels []string
	buffer := make([]byte, pageSize)
	for n := range imageMarks {
		if _, err := file.ReadAt(buffer, int64(n)*imageGap); err != nil {
			return trouble(err)
		}
		labels = append(labels, labelOf(buffer, n))
	}
	return summary(labels)
}

func readDirectory(path string) string {
	var names, labels []string
	for _, dir := range []string{path, filepath.Join(path, folder)} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return trouble(err)
		}
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
	}
	if len(names) == 0 {
		return ""
	}
	for n := range fileMarks {
		data, err := os.ReadFile(markFile(path, n))
		if err != nil {
			return trouble(err)
		}
		labels = append(labels, labelOf(data, n))
	}
	if len(names) != fileMarks+1 {
		return fmt.Sprintf("the names %q", names)
	}
	return summary(labels)
}

// summary returns the only label, or all of them.
func summary(labels []string) string {
	if len(slices.Compact(slices.Clone(labels))) == 1 {
		return labels[0]
	}
	return fmt.Sprintf("the marks %q", labels)
}
