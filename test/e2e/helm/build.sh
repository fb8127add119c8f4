#!/usr/bin/env bash
# Builds Helm into a folder (first argument). Needs Go >= 1.26 and the Go module proxy. Does nothing if this version is built already.
set -euo pipefail
out=$(mkdir -p "${1:?folder}" && cd "$1" && pwd)
cd "$(dirname "$0")"
# Test files run side by side.
exec 9> "$out/lock"
flock 9
version=$(go list -m -f '{{.Version}}' helm.sh/helm/v4)
[ -x "$out/helm" ] && [ "$(cat "$out/helm.version" 2>/dev/null)" = "$version" ] && exit
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X helm.sh/helm/v4/internal/version.version=$version" -o "$out/helm" helm.sh/helm/v4/cmd/helm
echo "$version" > "$out/helm.version"
