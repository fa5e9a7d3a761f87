package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
)

// release returns the release of the kernel in a file, according to the boot protocol of x86: two bytes contain the
// offset of a text from the end of the first sector. The text's first word is the release.
func release(path string) (string, error) {
	const sector, pointer = 0x200, 0x20e
	file, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if len(file) < pointer+2 {
		return "", fmt.Errorf("%s is no kernel: it has %d bytes", path, len(file))
	}
	at := sector + int(binary.LittleEndian.Uint16(file[pointer:]))
	text, _, ends := bytes.Cut(file[min(at, len(file)):], []byte{0})
	words := strings.Fields(string(text))
	if !ends || len(words) == 0 {
		return "", fmt.Errorf("%s is no kernel: it does not say its release", path)
	}
	return words[0], nil
}
