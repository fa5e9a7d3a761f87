package tests

// factor is one value of the chart, by its path, and the levels that a test gives it. A nil level leaves it out.
type factor struct {
	path   string
	levels []any
}

// pair is two levels of two factors, by their indexes.
type pair struct{ factor, level, otherFactor, otherLevel int }

// pairwise returns rows of levels, by their indexes, so that each pair of levels of two factors is in a row. The rows
// are the same each time. Each begins with a pair that is in no row yet, and continues with the level that brings most
// such pairs.
func pairwise(factors []factor) (rows [][]int) {
	missing := map[pair]bool{}
	for i := range factors {
		for j := i + 1; j < len(factors); j++ {
			for a := range factors[i].levels {
				for b := range factors[j].levels {
					missing[pair{i, a, j, b}] = true
				}
			}
		}
	}
	for i := range factors {
		for j := i + 1; j < len(factors); j++ {
			for a := range factors[i].levels {
				for b := range factors[j].levels {
					if p := (pair{i, a, j, b}); missing[p] {
						rows = append(rows, rowWith(p, factors, missing))
					}
				}
			}
		}
	}
	return rows
}

// rowWith returns a row with a pair, and removes the row's pairs from those that are missing.
func rowWith(first pair, factors []factor, missing map[pair]bool) []int {
	row := make([]int, len(factors))
	for i := range row {
		row[i] = -1
	}
	row[first.factor], row[first.otherFactor] = first.level, first.otherLevel
	for i := range row {
		if row[i] >= 0 {
			continue
		}
		most := -1
		for level := range factors[i].levels {
			if n := len(pairsOf(row, i, level, missing)); n > most {
				row[i], most = level, n
			}
		}
	}
	for i := range row {
		for _, p := range pairsOf(row, i, row[i], missing) {
			delete(missing, p)
		}
	}
	return row
}

// pairsOf returns the missing pairs of a factor's level with the levels that a row has already.
func pairsOf(row []int, i, level int, missing map[pair]bool) (pairs []pair) {
	for j, other := range row {
		p := pair{i, level, j, other}
		if j < i {
			p = pair{j, other, i, level}
		}
		if j != i && missing[p] {
			pairs = append(pairs, p)
		}
	}
	return pairs
}
