package ebs

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// statistics are the log page of EBS, little-endian ("Amazon EBS detailed performance statistics"). Amazon wrote its
// layout into nvme-cli (plugins/amzn/amzn-nvme.c, struct amzn_latency_log_page_base). Times are microseconds.
type statistics struct {
	Magic, _                                         uint32
	ReadOps, WriteOps                                uint64
	ReadBytes, WriteBytes                            uint64
	ReadTime, WriteTime                              uint64
	ExceededIOPS, ExceededThroughput                 uint64 // the volume's own limits
	InstanceExceededIOPS, InstanceExceededThroughput uint64
	QueueLength                                      uint64
	_                                                [416]byte
	ReadLatency, WriteLatency                        latencies
}

// latencies are a histogram, with the number of operations in each bin alone.
type latencies struct {
	Count uint64 // of the bins that are in use
	Bins  [64]struct {
		Lower, Upper uint64
		Count, _     uint32
	}
}

// statisticsMagic begins every log page of EBS. Other NVMe disks may have another page of that number.
const statisticsMagic = 0x3C23B510

func parseStatistics(data []byte) (s statistics, err error) {
	if _, err := binary.Decode(data, binary.LittleEndian, &s); err != nil {
		return s, fmt.Errorf("its log page has %d bytes, and EBS's has %d", len(data), pageLength)
	}
	if s.Magic != statisticsMagic {
		return s, fmt.Errorf("its log page begins with 0x%08X, and EBS's with 0x%08X", s.Magic, uint32(statisticsMagic))
	}
	for _, l := range []latencies{s.ReadLatency, s.WriteLatency} {
		if err := l.check(); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (l latencies) check() error {
	if l.Count > uint64(len(l.Bins)) {
		return fmt.Errorf("a histogram claims %d bins, and there is room for %d", l.Count, len(l.Bins))
	}
	for i := 1; i < int(l.Count); i++ {
		if l.Bins[i].Upper <= l.Bins[i-1].Upper {
			return fmt.Errorf("the bins of a histogram are not in order: %d after %d", l.Bins[i].Upper, l.Bins[i-1].Upper)
		}
	}
	return nil
}

// seconds returns microseconds as seconds.
func seconds(micros uint64) float64 { return float64(micros) / 1e6 }

// measurements returns the metrics under the names by which aws-ebs-csi-driver exports them (its docs/metrics.md).
func (s statistics) measurements() []backends.Measurement {
	counter := func(name string, value float64, help string) backends.Measurement {
		return backends.Measurement{Name: "aws_ebs_csi_" + name, Help: help, Counter: true, Value: value}
	}
	return []backends.Measurement{
		counter("read_ops_total", float64(s.ReadOps), "Completed reads of an EBS volume."),
		counter("write_ops_total", float64(s.WriteOps), "Completed writes of an EBS volume."),
		counter("read_bytes_total", float64(s.ReadBytes), "Bytes that were read from an EBS volume."),
		counter("write_bytes_total", float64(s.WriteBytes), "Bytes that were written to an EBS volume."),
		counter("read_seconds_total", seconds(s.ReadTime), "Time that the completed reads took in all."),
		counter("write_seconds_total", seconds(s.WriteTime), "Time that the completed writes took in all."),
		counter("exceeded_iops_seconds_total", seconds(s.ExceededIOPS),
			"Time in which more operations were asked for than the volume's IOPS."),
		counter("exceeded_tp_seconds_total", seconds(s.ExceededThroughput),
			"Time in which more bytes were asked for than the volume's throughput."),
		counter("ec2_exceeded_iops_seconds_total", seconds(s.InstanceExceededIOPS),
			"Time in which more operations were asked for than the instance's IOPS for EBS."),
		counter("ec2_exceeded_tp_seconds_total", seconds(s.InstanceExceededThroughput),
			"Time in which more bytes were asked for than the instance's throughput for EBS."),
		{Name: "aws_ebs_csi_volume_queue_length", Value: float64(s.QueueLength),
			Help: "Reads and writes of an EBS volume that are under way."},
		s.ReadLatency.measurement("aws_ebs_csi_read_io_latency_seconds", "Time of a read of an EBS volume.", s.ReadTime),
		s.WriteLatency.measurement("aws_ebs_csi_write_io_latency_seconds", "Time of a write of an EBS volume.", s.WriteTime),
	}
}

// measurement returns the histogram. EBS tells the sum apart, as the time that all operations took.
func (l latencies) measurement(name, help string, sum uint64) backends.Measurement {
	m := backends.Measurement{Name: name, Help: help, Value: seconds(sum), Buckets: map[float64]uint64{}}
	for _, bin := range l.Bins[:l.Count] {
		m.Count += uint64(bin.Count)
		if bin.Upper != math.MaxUint64 { // The last bin has no end.
			m.Buckets[seconds(bin.Upper)] = m.Count
		}
	}
	return m
}
