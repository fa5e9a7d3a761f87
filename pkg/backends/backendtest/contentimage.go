package backendtest

import (
	"bytes"
	"fmt"
	"os"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// The data in an image: the text, preceded by its length and the offset of a second copy near the end of the device.
// The rest stays empty.
const (
	imageHead  = 4096
	imageBlock = 512
)

func writeImage(device backends.Device, text []byte) error {
	file, err := os.OpenFile(device.Path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // Sync tells what there is to tell.
	tail := device.Identity.SizeBytes - imageBlock
	head := make([]byte, imageBlock)
	copy(head, fmt.Sprintf("%d %d\n%s", len(text), tail, text))
	if _, err := file.WriteAt(head, imageHead); err != nil {
		return err
	}
	if _, err := file.WriteAt(head, tail); err != nil {
		return err
	}
	return file.Sync()
}

func readImage(device backends.Device) ([]byte, error) {
	file, err := os.Open(device.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // Nothing was written.
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < device.Identity.SizeBytes {
		return nil, fmt.Errorf("the image has %d bytes, want %d", info.Size(), device.Identity.SizeBytes)
	}
	head, copied, hole := make([]byte, imageBlock), make([]byte, imageBlock), make([]byte, imageBlock)
	if _, err := file.ReadAt(head, imageHead); err != nil {
		return nil, err
	}
	if _, err := file.ReadAt(hole, imageHead+imageBlock); err != nil {
		return nil, err
	}
	if !empty(hole) {
		return nil, fmt.Errorf("there is data where none was written: %q", hole)
	}
	if empty(head) {
		return nil, nil
	}
	var length int
	var tail int64
	if _, err := fmt.Sscanf(string(head), "%d %d\n", &length, &tail); err != nil {
		return nil, fmt.Errorf("the data is not what was written: %q", head)
	}
	if _, err := file.ReadAt(copied, tail); err != nil {
		return nil, err
	}
	if !bytes.Equal(head, copied) {
		return nil, fmt.Errorf("the end of the image is %q, want %q", copied, head)
	}
	_, text, _ := bytes.Cut(head, []byte("\n"))
	return text[:length], nil
}

func empty(block []byte) bool { return bytes.Count(block, []byte{0}) == len(block) }
