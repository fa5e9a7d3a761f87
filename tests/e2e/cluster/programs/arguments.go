package programs

import "strings"

// arguments returns the arguments of the go command that builds the program.
func (p Program) arguments(version, path string) []string {
	// The list of compiled packages shows the progress.
	args := []string{"build", "-v"}
	if p.Test {
		// Kubernetes' tests do not pass vet.
		args = []string{"test", "-c", "-vet=off"}
	}
	args = append(args, "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", p.linkerFlags(version))
	if p.Tags != "" {
		args = append(args, "-tags", p.Tags)
	}
	return append(args, "-o", path, p.Package)
}

func (p Program) linkerFlags(version string) string {
	flags := []string{"-s", "-w"}
	for _, variable := range p.Variables {
		flags = append(flags, "-X", variable+"="+version)
	}
	if p.Cgo {
		flags = append(flags, "-extldflags", "-static")
	}
	return strings.Join(flags, " ")
}
