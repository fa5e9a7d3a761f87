package params

import (
	"math"
	"testing"

	"github.com/stowage-csi/stowage/pkg/failure"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "1": 1, "1024": 1024, "1k": 1000, "500M": 500_000_000, "2G": 2e9, "3T": 3e12, "4P": 4e15, "9E": 9e18,
		"1Ki": 1 << 10, "10Mi": 10 << 20, "10Gi": 10 << 30, "1Ti": 1 << 40, "8Pi": 8 << 50, "7Ei": 7 << 60, "0Gi": 0,
		"9223372036854775807": math.MaxInt64,
	} {
		got, err := ParseSize(text)
		if err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestParseSizeRefuses(t *testing.T) {
	for _, text := range []string{
		"", " ", "Gi", "k", "-1", "-1Gi", "-0", "+1", "1.5Gi", "1e3", "1E3", "0x10", "007", "1 Gi", " 1Gi", "1Gi ", "1gi",
		"1K", "1ki",
		"1KB", "1GiB", "1m", "1Gii", "1GiGi", "1kk", "1_000", "8Ei", "10E", "9223372036854775808", "9223372036854775807k",
		"99999999999999999999", "１Gi", "1\x00",
	} {
		got, err := ParseSize(text)
		if got != 0 || !failure.Is(err, failure.Invalid) {
			t.Errorf("ParseSize(%q) = %d, %v; want an error of kind invalid", text, got, err)
		}
	}
	_, err := ParseSize("10GB")
	mustBeInvalid(t, err, `size is "10GB": use a size in bytes such as 1048576, 500M or 10Gi, up to 9223372036854775807`)
}

func TestSizeString(t *testing.T) {
	for size, want := range map[Size]string{
		0: "0", 1: "1", 1000: "1000", 1024: "1Ki", 1536: "1536", 1 << 30: "1Gi", 1025 << 20: "1025Mi", 1 << 50: "1Pi",
		7 << 60:       "7Ei",
		math.MaxInt64: "9223372036854775807", -1024: "-1Ki", 500_000_000: "500000000",
	} {
		if got := size.String(); got != want {
			t.Errorf("Size(%d) is %q, want %q", int64(size), got, want)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, seed := range []string{"10Gi", "500M", "1024", "-1", "9223372036854775807Ei", "1kKi"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		size, err := ParseSize(text)
		if err != nil {
			if !failure.Is(err, failure.Invalid) {
				t.Fatalf("ParseSize(%q) fails with kind %v, want invalid", text, failure.KindOf(err))
			}
			return
		}
		if size < 0 {
			t.Fatalf("ParseSize(%q) = %d, which is negative", text, size)
		}
		again, err := ParseSize(size.String())
		if err != nil || again != size {
			t.Fatalf("%q is %d, whose text %q is read as %d, %v", text, size, size.String(), again, err)
		}
	})
}
