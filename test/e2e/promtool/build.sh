#!/usr/bin/env bash
# Builds promtool into a folder (first argument), without service discovery. Needs Go >= 1.26 and the Go module proxy. Does nothing if this version is
# built already.
set -euo pipefail
out=$(mkdir -p "${1:?folder}" && cd "$1" && pwd)
cd "$(dirname "$0")"
# Test files run side by side.
exec 9> "$out/lock"
flock 9
version=$(go list -m -f '{{.Version}}' github.com/prometheus/prometheus)
[ -x "$out/promtool" ] && [ "$(cat "$out/promtool.version" 2> /dev/null)" = "$version" ] && exit
CGO_ENABLED=0 go build -trimpath -tags remove_all_sd,netgo,slicelabels -ldflags '-s -w' -o "$out/promtool" github.com/prometheus/prometheus/cmd/promtool
echo "$version" > "$out/promtool.version"
