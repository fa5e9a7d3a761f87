package paramdoc

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/stowage-csi/stowage/pkg/params"
)

// heading opens the page. It asks tools and reviewers not to edit it (https://go.dev/s/generatedcode).
const heading = `<!-- Code generated from the parameters' tags. DO NOT EDIT. -->

# Parameters

Keys are case-sensitive. An unknown key, a value that is not allowed and a combination that is
impossible are refused, and nothing is provisioned. Sizes are bytes: ` + "`1048576`, `500M`, `10Gi`" + `.
`

// Section is a part of the page: the parameters of one struct.
type Section struct {
	Title  string
	Intro  string // Markdown; may be empty
	Target any    // a struct with param tags or a pointer to one; nil for a section without parameters
}

// Render writes the sections as one page of Markdown, the same bytes for the same sections. It fails if params.Check
// finds a mistake, before it writes anything, and if w fails.
func Render(w io.Writer, sections []Section) error {
	var page bytes.Buffer
	page.WriteString(heading)
	for _, section := range sections {
		if err := section.render(&page); err != nil {
			return fmt.Errorf("section %q: %w", section.Title, err)
		}
	}
	_, err := page.WriteTo(w)
	return err
}

func (s Section) render(page *bytes.Buffer) error {
	fmt.Fprintf(page, "\n## %s\n", s.Title)
	if s.Intro != "" {
		fmt.Fprintf(page, "\n%s\n", strings.TrimSpace(s.Intro))
	}
	if s.Target == nil {
		return nil
	}
	if err := params.Check(s.Target); err != nil {
		return err
	}
	fields, ignored := divide(params.Describe(s.Target))
	renderTable(page, fields)
	renderIgnored(page, ignored)
	return nil
}

// divide separates the keys that have an effect from those that are ignored.
func divide(all []params.Field) (fields, ignored []params.Field) {
	for _, f := range all {
		if f.Ignored {
			ignored = append(ignored, f)
			continue
		}
		fields = append(fields, f)
	}
	return fields, ignored
}

func renderTable(page *bytes.Buffer, fields []params.Field) {
	if len(fields) == 0 {
		return
	}
	page.WriteString("\n| Key | Type | Default | Allowed | Meaning |\n|---|---|---|---|---|\n")
	for _, f := range fields {
		cells := []string{keys(f), f.Type, code(f.Default), escape(f.Allowed), escape(f.Doc)}
		fmt.Fprintf(page, "| %s |\n", strings.Join(cells, " | "))
	}
}

func renderIgnored(page *bytes.Buffer, ignored []params.Field) {
	if len(ignored) == 0 {
		return
	}
	page.WriteString("\nAlso accepted, without effect on the driver:\n\n")
	for _, f := range ignored {
		fmt.Fprintf(page, "- %s%s\n", keys(f), prefixed(": ", escape(f.Doc)))
	}
}

// keys renders the key, followed by its older spellings.
func keys(f params.Field) string {
	spellings := []string{code(f.Key)}
	for _, alias := range f.Aliases {
		spellings = append(spellings, code(alias))
	}
	return strings.Join(spellings, " or ")
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// code renders text as the user types it. Keys and defaults contain no backquotes. A vertical bar would end the cell
// even inside code (GitHub Flavored Markdown, "Tables").
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}

// escape keeps running text inside one cell.
func escape(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(text)
}
