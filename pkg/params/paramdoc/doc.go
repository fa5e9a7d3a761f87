// Package paramdoc writes the reference of all parameters, docs/parameters.md, from the same tags that decode them, so
// that the page and the program always agree.
package paramdoc
