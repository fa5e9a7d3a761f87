package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table formats text in columns.
type table struct {
	title string
	align string // l or r for each column
	rows  [][]string
}

func newTable(title, align string) *table { return &table{title: title, align: align} }

// row adds a row with a cell for each column.
func (t *table) row(cells ...any) {
	row := make([]string, len(t.align))
	for i := range row {
		row[i] = fmt.Sprint(cells[i])
	}
	t.rows = append(t.rows, row)
}

func (t *table) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s\n", t.title)
	widths := make([]int, len(t.align))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.align[i] == 'r' {
				cell, pad = pad+cell, ""
			}
			line.WriteString("  " + cell + pad)
		}
		fmt.Fprintln(out, strings.TrimRight(line.String(), " "))
	}
}
