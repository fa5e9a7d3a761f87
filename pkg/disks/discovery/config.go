package discovery

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/params"
	"github.com/stowage-csi/stowage/pkg/safepath"
	"github.com/stowage-csi/stowage/pkg/strictyaml"
)

// Config says which volumes are found on a node.
type Config struct {
	// Devices select disks and partitions. A device is found if any rule selects it; the first such rule counts.
	Devices []DeviceRule `json:"devices,omitempty"`
	// MountPoints select mounted filesystems.
	MountPoints []MountRule `json:"mountPoints,omitempty"`
}

// DeviceRule selects disks. All of its conditions must hold.
type DeviceRule struct {
	// Paths are patterns (path.Match) of device nodes, or of links to them such as /dev/disk/by-id/nvme-*.
	Paths []string `json:"paths"`
	// MinSize and MaxSize bound the size, in the form 100Gi.
	MinSize string `json:"minSize,omitempty"`
	MaxSize string `json:"maxSize,omitempty"`
	// Rotational selects rotating disks, or others.
	Rotational *bool `json:"rotational,omitempty"`
	// Transports are some of nvme, sata, scsi, usb, virtio, mmc, loop and dm.
	Transports []string `json:"transports,omitempty"`
	// Models are patterns (path.Match) of the model that the disk reports.
	Models []string `json:"models,omitempty"`
	// Partitions also selects partitions. Without it only whole disks are found.
	Partitions bool `json:"partitions,omitempty"`
	// NotBlank also offers devices with data, which the next user can read.
	NotBlank bool `json:"notBlank,omitempty"`

	sizes
}

// MountRule selects mounted filesystems.
type MountRule struct {
	// Paths are patterns (path.Match) of mount points.
	Paths []string `json:"paths"`
	// MinSize and MaxSize bound the filesystem's size.
	MinSize string `json:"minSize,omitempty"`
	MaxSize string `json:"maxSize,omitempty"`
	// NotBlank also offers filesystems with files.
	NotBlank bool `json:"notBlank,omitempty"`

	sizes
}

// sizes are bounds in bytes; most is 0 for no upper bound.
type sizes struct{ least, most int64 }

func (s sizes) allow(size int64) bool { return size >= s.least && (s.most == 0 || size <= s.most) }

// transports returns all transports that a rule may name.
func transports() []string {
	return []string{"nvme", "sata", "scsi", "usb", "virtio", "mmc", "loop", "dm"}
}

// Parse reads a configuration in YAML.
func Parse(text []byte) (Config, error) {
	var c Config
	if err := strictyaml.Unmarshal(text, &c); err != nil {
		return Config{}, err
	}
	if len(c.Devices)+len(c.MountPoints) == 0 {
		return Config{}, errors.New("neither devices nor mountPoints are given: nothing could be found")
	}
	for i := range c.Devices {
		if err := c.Devices[i].resolve(); err != nil {
			return Config{}, fmt.Errorf("devices[%d]: %w", i, err)
		}
	}
	for i := range c.MountPoints {
		if err := c.MountPoints[i].resolve(); err != nil {
			return Config{}, fmt.Errorf("mountPoints[%d]: %w", i, err)
		}
	}
	return c, nil
}

func (r *DeviceRule) resolve() (err error) {
	if err := checkPaths(r.Paths, "/dev/"); err != nil {
		return err
	}
	for _, t := range r.Transports {
		if !slices.Contains(transports(), t) {
			return fmt.Errorf("the transport is %q: use some of %s", t, strings.Join(transports(), ", "))
		}
	}
	for _, m := range r.Models {
		if _, err := path.Match(m, ""); err != nil || m == "" {
			return fmt.Errorf("the model %q is no pattern: use one such as \"INTEL*\"", m)
		}
	}
	r.sizes, err = parseSizes(r.MinSize, r.MaxSize)
	return err
}

func (r *MountRule) resolve() (err error) {
	if err := checkPaths(r.Paths, "/"); err != nil {
		return err
	}
	r.sizes, err = parseSizes(r.MinSize, r.MaxSize)
	return err
}

// checkPaths refuses patterns that can match nothing, or cannot be intended.
func checkPaths(patterns []string, below string) error {
	if len(patterns) == 0 {
		return fmt.Errorf("no paths are given: give patterns of paths below %s", below)
	}
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("the path %q is no pattern: %w", p, err)
		}
		if plain, err := safepath.Absolute(p); err != nil || plain != p || p == "/" || !strings.HasPrefix(p, below) {
			return fmt.Errorf("the path %q is not usable: give an absolute path below %s, without \"..\", \"//\" or a \"/\" "+
				"at its end", p, below)
		}
	}
	return nil
}

func parseSizes(least, most string) (s sizes, err error) {
	for _, one := range []struct {
		name, text string
		bytes      *int64
	}{{"minSize", least, &s.least}, {"maxSize", most, &s.most}} {
		if one.text == "" {
			continue
		}
		size, err := params.ParseSize(one.text)
		if err != nil || size <= 0 {
			return s, fmt.Errorf("%s is %q: use a size such as 100Gi", one.name, one.text)
		}
		*one.bytes = int64(size)
	}
	if s.most > 0 && s.most < s.least {
		return s, fmt.Errorf("minSize is %s and maxSize is %s: no size is both", least, most)
	}
	return s, nil
}
