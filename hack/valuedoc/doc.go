// Command valuedoc generates docs/values.md from the chart's values.yaml and values.schema.json, so that the page has
// every value that the chart accepts, with its default and its comment.
//
//	valuedoc deploy/charts/stowage
package main
