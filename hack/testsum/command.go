package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/hack/outcome"
)

// command is a command line of go test. Its packages are the arguments that begin with ./ or look like an import path.
type command struct {
	dir           string
	env           string   // environment variables in front of the command, for a user
	before, after []string // arguments before and after the packages
	packages      []string
	quarantine    []outcome.Allowance // the excluded tests
}

func parseCommand(o options, args []string) (command, error) {
	c := command{dir: o.dir}
	for _, arg := range args {
		switch {
		case isPackage(arg):
			c.packages = append(c.packages, arg)
		case len(c.packages) == 0:
			c.before = append(c.before, arg)
		default:
			c.after = append(c.after, arg)
		}
	}
	if len(c.before) < 2 || !slices.Contains(c.before, "-json") || len(c.packages) == 0 {
		return c, fmt.Errorf("want a command such as go test -json ./pkg/..., not %q", args)
	}
	var err error
	c.quarantine, err = readQuarantine(o.quarantine)
	return c, err
}

func isPackage(arg string) bool {
	return strings.HasPrefix(arg, "./") || regexp.MustCompile(`^[a-z][a-z0-9.-]*\.[a-z]+/`).MatchString(arg)
}

// run runs the command and passes its events to the summary, which learns the results from them.
func (c command) run(ctx context.Context, s *summary) error {
	s.emptied = c.mayBeEmpty
	if len(c.quarantine) == 0 {
		return c.start(ctx, slices.Concat(c.before, c.packages, c.after), s)
	}
	return c.runWithout(ctx, s)
}

func (c command) start(ctx context.Context, args []string, s *summary) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Stderr, cmd.Env = c.dir, os.Stderr, os.Environ()
	if slices.Contains(args, "-race") {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("cannot read from %s: %w", args[0], err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot run %s: %w", args[0], err)
	}
	if err := consume(out, s); err != nil {
		return errors.Join(err, cmd.Wait())
	}
	s.ended(cmd.Wait())
	return nil
}

// alone returns the command that reruns one test of a package, or all of its tests if no test is given.
func (c command) alone(pkg, test string) []string {
	before := slices.DeleteFunc(slices.Clone(c.before), measures)
	before = append(slices.DeleteFunc(before, func(arg string) bool { return arg == "-count=1" }), "-count=1")
	if test != "" {
		before = append(before, "-run", pattern(test))
	}
	return slices.Concat(before, []string{pkg}, c.after)
}

// pattern returns the argument of go test's -run for one test.
func pattern(test string) string {
	levels := strings.Split(test, "/")
	for i, level := range levels {
		levels[i] = "^" + regexp.QuoteMeta(level) + "$"
	}
	return strings.Join(levels, "/")
}

// environment returns the variables that a user's shell needs for the command, if they differ from go's defaults.
func environment(args []string) string {
	text := ""
	for _, name := range []string{"CGO_ENABLED", "GOFLAGS"} {
		value := os.Getenv(name)
		if value != "" && (name != "CGO_ENABLED" || value == "0" && !slices.Contains(args, "-race")) {
			text += name + "=" + quote(value) + " "
		}
	}
	return text
}

// repeat returns the command that repeats a failure in the events of another command.
func (o options) repeat(f *failure) string {
	if o.again == "" {
		return ""
	}
	text := o.again
	if part := f.part(); part != "" {
		text += " -run " + quote(pattern(part))
	}
	pkg := f.id.pkg
	if own, ok := debug.ReadBuildInfo(); ok {
		if folder, inside := strings.CutPrefix(pkg, own.Main.Path+"/"); inside {
			pkg = "./" + folder
		}
	}
	return text + " " + quote(pkg) + " | go run ./hack/testsum -v"
}

// repeat returns the command that repeats a failure, for a user.
func (c command) repeat(f *failure) string {
	if f.id.pkg == goTest {
		return c.text(slices.Concat(c.before, c.packages, c.after))
	}
	return c.text(c.alone(f.id.pkg, f.part()))
}

// measures reports whether the argument concerns coverage, whose output a rerun would overwrite.
func measures(arg string) bool { return strings.HasPrefix(arg, "-cover") }

// text returns a command line for a user, without the arguments that only testsum needs.
func (c command) text(args []string) string {
	quoted := make([]string, 0, len(args))
	for _, arg := range args {
		if arg == "-json" {
			continue
		}
		quoted = append(quoted, quote(arg))
	}
	text := c.env + strings.Join(quoted, " ")
	if c.dir != "" {
		text = "cd " + quote(c.dir) + " && " + text
	}
	return text
}

// quote quotes a word for bash.
func quote(arg string) string {
	if regexp.MustCompile(`^[\w@%+=:,./-]+$`).MatchString(arg) {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
