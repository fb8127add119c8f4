//go:build assets

// Package promtool pins the program that runs the unit tests of the alert rules: build.sh builds it.
package promtool

import _ "github.com/prometheus/prometheus/cmd/promtool"
