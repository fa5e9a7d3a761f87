package main

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// row writes one row of the table. The value and its default are code. In the meaning, Markdown would take <node> for a
// tag.
func row(page *bytes.Buffer, path, value, kind, meaning string) {
	if value != "" {
		value = "`" + value + "`"
	}
	meaning = strings.ReplaceAll(meaning, "<", `\<`)
	cells := []string{"`" + path + "`", value, kind, meaning}
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(cell, "|", `\|`)
	}
	fmt.Fprintf(page, "| %s |\n", strings.Join(cells, " | "))
}

// comment joins comments to one text. Lines that are indented further are examples of YAML, and are left out.
func comment(comments ...string) string {
	var words []string
	for _, one := range comments {
		for line := range strings.Lines(one) {
			line = strings.TrimSuffix(strings.TrimPrefix(line, "#"), "\n")
			if !strings.HasPrefix(line, "  ") {
				words = append(words, strings.Fields(line)...)
			}
		}
	}
	return strings.Join(words, " ")
}

// flow returns a value as YAML in one line.
func flow(value *yaml.Node) (string, error) {
	line, err := yaml.Marshal(bare(value))
	return strings.TrimSpace(string(line)), err
}

// bare returns a copy of a value without comments, in flow style.
func bare(value *yaml.Node) *yaml.Node {
	copied := &yaml.Node{Kind: value.Kind, Tag: value.Tag, Value: value.Value, Style: value.Style}
	if value.Kind != yaml.ScalarNode {
		copied.Style = yaml.FlowStyle
	}
	for _, part := range value.Content {
		copied.Content = append(copied.Content, bare(part))
	}
	return copied
}

// typeOf returns the allowed values of a property, or its type.
func typeOf(property *yaml.Node) string {
	if allowed := at(property, "enum"); allowed != nil {
		values := make([]string, len(allowed.Content))
		for i, value := range allowed.Content {
			values[i] = "`" + value.Value + "`"
		}
		return strings.Join(values, ", ")
	}
	kind := text(at(property, "type"))
	least, most := text(at(property, "minimum")), text(at(property, "maximum"))
	switch {
	case least != "" && most != "":
		return kind + ", " + least + " to " + most
	case least != "":
		return kind + ", at least " + least
	}
	return kind
}

// at returns the value of a key of a mapping; nil if there is none.
func at(mapping *yaml.Node, key string) *yaml.Node {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// text returns the text of a scalar; empty for no value.
func text(scalar *yaml.Node) string {
	if scalar == nil {
		return ""
	}
	return scalar.Value
}
