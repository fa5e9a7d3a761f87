package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// heading opens the page. It asks tools and reviewers not to edit it (https://go.dev/s/generatedcode).
const heading = `<!-- Code generated from deploy/charts/stowage/values.yaml. DO NOT EDIT. -->

# Values of the chart

The chart accepts these values and no others: Helm refuses an unknown key. A value without a default
is unset. [configuration.md](configuration.md) explains the keys of each ` + "`config`" + `.

| Value | Default | Type | Meaning |
|---|---|---|---|
`

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: valuedoc CHART")
		os.Exit(2)
	}
	if err := run(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "valuedoc:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, chart string) error {
	values, err := read(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	schema, err := read(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		return err
	}
	return render(out, values, schema)
}

// read returns the mapping in a file. JSON is YAML, too.
func read(path string) (*yaml.Node, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s has no mapping: it must have one", path)
	}
	return document.Content[0], nil
}

// render writes the page.
func render(out io.Writer, values, schema *yaml.Node) error {
	page := bytes.NewBufferString(heading)
	if err := describe(page, "", values, schema); err != nil {
		return err
	}
	_, err := page.WriteTo(out)
	return err
}

// describe writes a row for each value of a mapping, in the order of the chart, and then one for each value that only
// the schema has.
func describe(page *bytes.Buffer, prefix string, values, schema *yaml.Node) error {
	properties := at(schema, "properties")
	for i := 0; i+1 < len(values.Content); i += 2 {
		key, value := values.Content[i], values.Content[i+1]
		property := at(properties, key.Value)
		if property == nil {
			return fmt.Errorf("values.yaml:%d: the schema has no %s: add it", key.Line, prefix+key.Value)
		}
		if err := describeValue(page, prefix+key.Value, key, value, property); err != nil {
			return err
		}
	}
	for i := 0; properties != nil && i+1 < len(properties.Content); i += 2 {
		name, property := properties.Content[i].Value, properties.Content[i+1]
		if name != "global" && at(values, name) == nil { // Helm itself adds global.
			row(page, prefix+name, "", typeOf(property), text(at(property, "description")))
		}
	}
	return nil
}

// describeValue writes the rows of one value. A mapping whose keys the schema does not name is a value as a whole.
func describeValue(page *bytes.Buffer, path string, key, value, property *yaml.Node) error {
	meaning := comment(key.HeadComment, key.LineComment, value.HeadComment, value.LineComment)
	if meaning == "" {
		meaning = text(at(property, "description"))
	}
	if at(property, "properties") != nil && value.Kind == yaml.MappingNode {
		if meaning != "" {
			row(page, path, "", "", meaning)
		}
		return describe(page, path+".", value, property)
	}
	inline, err := flow(value)
	if err != nil {
		return fmt.Errorf("values.yaml:%d: %s: %w", key.Line, path, err)
	}
	row(page, path, inline, typeOf(property), meaning)
	return nil
}
