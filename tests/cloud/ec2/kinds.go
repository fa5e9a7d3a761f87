package ec2

// kindRule holds the limits of a volume type in the EBS User Guide.
type kindRule struct {
	leastGiB, mostGiB   int
	leastIOPS, mostIOPS int // 0 for types without provisioned IOPS
	iopsPerGiB          int
	needsIOPS           bool
	throughput          bool
}

func rules() map[string]kindRule {
	return map[string]kindRule{
		"standard": {leastGiB: 1, mostGiB: 1024},
		"gp2":      {leastGiB: 1, mostGiB: 16384},
		"gp3":      {leastGiB: 1, mostGiB: 65536, leastIOPS: 3000, mostIOPS: 80000, iopsPerGiB: 500, throughput: true},
		"io1":      {leastGiB: 4, mostGiB: 16384, leastIOPS: 100, mostIOPS: 64000, iopsPerGiB: 50, needsIOPS: true},
		"io2":      {leastGiB: 4, mostGiB: 65536, leastIOPS: 100, mostIOPS: 256000, iopsPerGiB: 1000, needsIOPS: true},
		"st1":      {leastGiB: 125, mostGiB: 16384},
		"sc1":      {leastGiB: 125, mostGiB: 16384},
	}
}

const (
	baseIOPS, baseThroughput          = 3000, 125 // of gp3, in operations and MiB a second
	mostThroughput, iopsPerThroughput = 2000, 4
)

// shape holds a volume's type, size and performance.
type shape struct {
	kind                   string
	size, iops, throughput int // GiB, operations and MiB a second
	multi                  bool
}

// complete sets the defaults of unset fields.
func (v *shape) complete() {
	if v.kind == "" {
		v.kind = "gp2"
	}
	if v.kind == "gp3" && v.iops == 0 {
		v.iops = baseIOPS
	}
	if v.kind == "gp3" && v.throughput == 0 {
		v.throughput = baseThroughput
	}
}

// check returns the rule that a shape breaks, or nil.
func (v shape) check() *fault {
	rule, ok := rules()[v.kind]
	switch {
	case !ok:
		return faultf("InvalidParameterValue", "Volume type %s is not recognized", v.kind)
	case v.size < rule.leastGiB || v.size > rule.mostGiB:
		return faultf("InvalidParameterValue", "Volume of %dGiB is not within %d-%dGiB for volume type %s", v.size,
			rule.leastGiB, rule.mostGiB, v.kind)
	case v.iops != 0 && rule.mostIOPS == 0:
		return faultf("InvalidParameterCombination", "The parameter iops is not supported for %s volumes", v.kind)
	case v.iops == 0 && rule.needsIOPS:
		return faultf("MissingParameter", "The parameter iops must be specified for %s volumes", v.kind)
	case v.iops != 0 && (v.iops < rule.leastIOPS || v.iops > rule.mostIOPS):
		return faultf("InvalidParameterValue", "Volume iops of %d is not within %d-%d for volume type %s", v.iops,
			rule.leastIOPS, rule.mostIOPS, v.kind)
	case v.iops > max(rule.iopsPerGiB*v.size, rule.leastIOPS):
		return faultf("InvalidParameterValue", "Iops to volume size ratio of %d/%d is too high; maximum is %d", v.iops,
			v.size, rule.iopsPerGiB)
	case v.multi && v.kind != "io1" && v.kind != "io2":
		return faultf("InvalidParameterCombination", "Multi-Attach is not supported for %s volumes", v.kind)
	}
	return v.checkThroughput(rule)
}

func (v shape) checkThroughput(rule kindRule) *fault {
	switch {
	case v.throughput == 0:
		return nil
	case !rule.throughput:
		return faultf("InvalidParameterCombination", "The parameter throughput is not supported for %s volumes", v.kind)
	case v.throughput < baseThroughput || v.throughput > mostThroughput:
		return faultf("InvalidParameterValue", "Throughput of %d is not within %d-%d", v.throughput, baseThroughput,
			mostThroughput)
	case v.throughput*iopsPerThroughput > v.iops:
		return faultf("InvalidParameterValue", "Throughput (MiBps) to iops ratio of %d/%d is too high; maximum is 0.25",
			v.throughput, v.iops)
	}
	return nil
}
