// Package observability checks that deploy/observability/series.txt lists what the driver exports: each time series
// with its labels, for the alert rules and the dashboard to be checked against (deploy/tests), and for people to read.
package observability
