package params

import (
	"math"
	"strconv"
	"strings"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// Size is a number of bytes.
type Size int64

// sizeForms describes the forms that ParseSize accepts.
const sizeForms = "a size in bytes such as 1048576, 500M or 10Gi"

// ParseSize parses a size in the form of a Kubernetes quantity: a whole decimal number of bytes, or of Ki, Mi, Gi, Ti,
// Pi, Ei (powers of 1024) or k, M, G, T, P, E (powers of 1000). It refuses fractions, exponents, signs, leading zeros
// and numbers that need more than 63 bits. Kinds: Invalid.
//
// Source: the grammar in k8s.io/apimachinery/pkg/api/resource, Quantity.
func ParseSize(text string) (Size, error) {
	if size, ok := parseSize(text); ok {
		return size, nil
	}
	return 0, failure.Errorf(failure.Invalid, "size is %s: use %s, up to %d", quote(text), sizeForms, int64(math.MaxInt64))
}

func parseSize(text string) (Size, bool) {
	number := strings.TrimRight(text, "kKMGTPEi")
	unit, ok := unitBytes(text[len(number):])
	if !ok || strings.HasPrefix(number, "-") {
		return 0, false
	}
	n, ok := parseInteger(number)
	if !ok || n > math.MaxInt64/unit {
		return 0, false
	}
	return Size(n * unit), true
}

// parseInteger parses a decimal integer in its canonical spelling only.
func parseInteger(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text {
		return 0, false
	}
	return n, true
}

func unitBytes(suffix string) (int64, bool) {
	switch suffix {
	case "":
		return 1, true
	case "k":
		return 1e3, true
	case "M":
		return 1e6, true
	case "G":
		return 1e9, true
	case "T":
		return 1e12, true
	case "P":
		return 1e15, true
	case "E":
		return 1e18, true
	}
	for i, unit := range binaryUnits() {
		if suffix == unit {
			return 1 << (10 * (i + 1)), true
		}
	}
	return 0, false
}

func binaryUnits() [6]string { return [6]string{"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"} }

// String returns the size in the largest power of 1024 that divides it, for example "10Gi", or in bytes if there is
// none. ParseSize parses the text back for every size that is not negative.
func (s Size) String() string {
	unit := ""
	for _, next := range binaryUnits() {
		if s == 0 || s%1024 != 0 {
			break
		}
		s, unit = s/1024, next
	}
	return strconv.FormatInt(int64(s), 10) + unit
}
