package params

import (
	"strings"
	"unicode/utf8"
)

// nearest returns the known key that is most similar to an unknown one; ok is false if none is similar. Of equally
// similar keys it returns the first in the order of the fields.
func (s *schema) nearest(key string) (near string, ok bool) {
	key = strings.ToLower(key)
	best := 0
	for _, p := range s.parameters {
		for _, candidate := range p.keys {
			limit := tolerance(candidate)
			if ok {
				limit = min(limit, best-1)
			}
			if d := distance(key, strings.ToLower(candidate), limit); d <= limit {
				near, best, ok = p.key, d, true
			}
		}
	}
	return near, ok
}

// tolerance returns the number of typing errors up to which a key is still recognised.
func tolerance(key string) int {
	return min(max(utf8.RuneCountInString(key)/3, 1), 3)
}

// distance returns the minimum number of insertions, deletions, substitutions and swaps of neighbours that turn a into
// b, where no character takes part twice; any number above limit if it is more than limit. Texts of very different
// lengths are not compared.
func distance(a, b string, limit int) int {
	if limit < 0 || len(a) > utf8.UTFMax*(len(b)+limit) {
		return limit + 1
	}
	from, to := []rune(a), []rune(b)
	if len(from)-len(to) > limit || len(to)-len(from) > limit {
		return limit + 1
	}
	before, above, row := make([]int, len(to)+1), make([]int, len(to)+1), make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range from {
		before, above, row = above, row, before
		row[0] = i + 1
		for j := range to {
			row[j+1] = min(above[j+1]+1, row[j]+1, above[j]+differ(from[i], to[j]))
			if i > 0 && j > 0 && from[i] == to[j-1] && from[i-1] == to[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(to)]
}

func differ(a, b rune) int {
	if a == b {
		return 0
	}
	return 1
}
