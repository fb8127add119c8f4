//go:build assets

// Package helm pins the Helm that the chart's tests run: build.sh builds it.
package helm

import _ "helm.sh/helm/v4/cmd/helm"
