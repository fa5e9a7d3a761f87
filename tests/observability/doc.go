// Package observability checks that deploy/observability/series.txt lists all exported metrics of the driver: each time
// series with its labels. The alert rules and the dashboard are checked against it (deploy/tests), and people can read
// it.
package observability
