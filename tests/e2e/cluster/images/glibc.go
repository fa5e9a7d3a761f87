package images

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// glibc returns the files of an image with Debian's own shell and dd: many volume specs use options that busybox does
// not support.
func glibc(tools []File) ([]File, error) {
	var own []File
	for _, program := range []File{{Path: "bin/sh", Mode: 0o755, Source: "/bin/dash"},
		{Path: "bin/dd", Mode: 0o755, Source: "/bin/dd"}} {
		needed, err := libraries(program.Source)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", program.Source, err)
		}
		own = append(own, program)
		for _, file := range needed {
			if !has(own, file.Path) {
				own = append(own, file)
			}
		}
	}
	return with(tools, own...), nil
}

// libraries returns the loader and the shared libraries of a program, at the paths where the program looks for them.
func libraries(program string) ([]File, error) {
	file, err := elf.Open(program)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	loader, err := interpreter(file)
	if err != nil {
		return nil, err
	}
	names, err := file.ImportedLibraries()
	if err != nil {
		return nil, err
	}
	needed := []File{{Path: strings.TrimPrefix(loader, "/"), Mode: 0o755, Source: loader}}
	for _, name := range names {
		library, err := find(name)
		if err != nil {
			return nil, err
		}
		needed = append(needed, File{Path: "lib/" + name, Mode: 0o755, Source: library})
	}
	return needed, nil
}

// interpreter returns the path of a program's loader.
func interpreter(file *elf.File) (string, error) {
	section := file.Section(".interp")
	if section == nil {
		return "", fmt.Errorf("names no loader")
	}
	text, err := section.Data()
	return strings.TrimRight(string(text), "\x00"), err
}

// find returns the path of a library on this machine.
func find(name string) (string, error) {
	for _, pattern := range []string{"/lib/*-linux-gnu/", "/usr/lib/*-linux-gnu/", "/lib64/", "/lib/"} {
		if found, err := filepath.Glob(pattern + name); err == nil && len(found) > 0 {
			return found[0], nil
		}
	}
	return "", fmt.Errorf("library %s: %w", name, os.ErrNotExist)
}
