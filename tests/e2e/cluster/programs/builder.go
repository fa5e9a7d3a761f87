package programs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/store"
)

// Builder builds programs from the modules that a folder's go.mod pins.
type Builder struct {
	tools     string // the folder of go.mod
	store     *store.Store
	toolchain string            // version and architecture
	versions  map[string]string // of the modules that go.mod requires
}

// NewBuilder returns a builder for the tools module in the folder.
func NewBuilder(ctx context.Context, tools string, entries *store.Store) (*Builder, error) {
	b := &Builder{tools: tools, store: entries}
	toolchain, err := b.goOutput(ctx, tools, "env", "GOVERSION", "GOARCH")
	if err != nil {
		return nil, err
	}
	b.toolchain = strings.Join(strings.Fields(string(toolchain)), "/")
	b.versions, err = b.required(ctx)
	return b, err
}

// required returns the versions of the modules that go.mod requires.
func (b *Builder) required(ctx context.Context) (map[string]string, error) {
	text, err := b.goOutput(ctx, b.tools, "mod", "edit", "-json")
	if err != nil {
		return nil, err
	}
	var file struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("go mod edit -json: %w", err)
	}
	versions := map[string]string{}
	for _, module := range file.Require {
		versions[module.Path] = module.Version
	}
	return versions, nil
}

// Kubernetes returns the version of Kubernetes that is built.
func (b *Builder) Kubernetes() string { return b.versions[kubernetes] }

// Version returns the version of a module that the tools module requires, and an empty string for any other.
func (b *Builder) Version(module string) string { return b.versions[module] }

// ModuleDir returns the folder with the files of a module that the tools module requires.
func (b *Builder) ModuleDir(ctx context.Context, module string) (string, error) {
	if _, err := b.goOutput(ctx, b.tools, "mod", "download", module); err != nil {
		return "", store.Unfetched(err)
	}
	dir, err := b.goOutput(ctx, b.tools, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module)
	return strings.TrimSpace(string(dir)), err
}

// Build returns the path of the program in the store, and builds it if the store does not have it.
func (b *Builder) Build(ctx context.Context, p Program) (string, error) {
	key, err := b.key(p)
	if err != nil {
		return "", err
	}
	return b.store.Make(ctx, store.Item{
		Name: p.Name,
		Key:  key,
		Make: func(ctx context.Context, path string, progress *store.Progress) error {
			return b.build(ctx, p, path, progress)
		},
	})
}

// key returns a hash of everything that the program is built from.
func (b *Builder) key(p Program) (string, error) {
	definition, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	key := store.NewKey(string(definition), b.toolchain)
	if p.Pinned != nil {
		return key.String() // The checksum identifies the module.
	}
	key.Files(filepath.Join(b.tools, "go.mod"), filepath.Join(b.tools, "go.sum"))
	if strings.HasPrefix(p.Package, "./") {
		key.Files(filepath.Join(b.tools, p.Package))
	}
	return key.String()
}

func (b *Builder) build(ctx context.Context, p Program, path string, progress *store.Progress) error {
	dir := b.tools
	if p.Pinned != nil {
		var err error
		if dir, err = b.download(ctx, p.Pinned); err != nil {
			return err
		}
	}
	cmd := b.command(ctx, dir, p.arguments(b.versionOf(p), path)...)
	cmd.Stdout, cmd.Stderr = progress, progress
	if p.Cgo {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build %s: %w:\n%s", p.Package, err, progress.Tail())
	}
	return nil
}

func (b *Builder) versionOf(p Program) string {
	if p.Pinned != nil {
		return p.Pinned.Version
	}
	return b.versions[p.Version]
}

// download returns the module's folder in the module cache, after a check that its contents are the pinned ones.
func (b *Builder) download(ctx context.Context, p *Pinned) (string, error) {
	// Outside any module, so that no go.mod has an effect.
	text, err := b.goOutput(ctx, os.TempDir(), "mod", "download", "-json", p.Module+"@"+p.Version)
	if err != nil {
		return "", store.Unfetched(err)
	}
	var module struct{ Dir, Sum string }
	if err := json.Unmarshal(text, &module); err != nil {
		return "", fmt.Errorf("go mod download -json: %w", err)
	}
	if module.Sum != p.Sum {
		return "", fmt.Errorf("%s %s has the checksum %s, not %s", p.Module, p.Version, module.Sum, p.Sum)
	}
	return module.Dir, nil
}

// command returns a go command whose environment cannot change the result of the build.
func (b *Builder) command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
	return cmd
}

func (b *Builder) goOutput(ctx context.Context, dir string, args ...string) ([]byte, error) {
	out, err := b.command(ctx, dir, args...).Output()
	if err == nil {
		return out, nil
	}
	stderr := ""
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		stderr = "\n" + string(exit.Stderr)
	}
	return nil, fmt.Errorf("go %s: %w%s", strings.Join(args, " "), err, stderr)
}
