#!/usr/bin/env bash
# Writes the artifacts of a release except the image into a folder (first argument): package, chart, SBOM and release notes. The second
# argument is the tag, which has to agree with the package, the chart and the changelog.
set -euo pipefail
out=$(mkdir -p "${1:?folder}" && cd "$1" && pwd)
tag=${2:?tag}
cd "$(dirname "$0")/.."
version=$(node -p 'require("./package.json").version')
fail() { echo "error: $1; run npm version, and push the tag that it creates" >&2; exit 1; }
[ "$tag" = "v$version" ] || fail "the tag is $tag, and package.json has version $version"
grep -qx "version: $version" charts/endpoint-syncer/Chart.yaml || fail "the chart does not have version $version"
grep -qx "appVersion: $version" charts/endpoint-syncer/Chart.yaml || fail "the chart does not have appVersion $version"
grep -q "endpoint-syncer:$version$" docs/deploy.md || fail "docs/deploy.md does not name the image $version"
awk -v heading="## $version " 'index($0, "## ") == 1 { isIn = index($0, heading) == 1; next } isIn' CHANGELOG.md > "$out/notes.md"
grep -q '[^[:space:]]' "$out/notes.md" || fail "CHANGELOG.md has no section for version $version"

npm pack --silent --pack-destination "$out" > /dev/null
npm run --silent sbom > "$out/sbom.cdx.json"
"${HELM:-helm}" package charts/endpoint-syncer --destination "$out/chart" > /dev/null
mv "$out/chart/endpoint-syncer-$version.tgz" "$out/chart-$version.tgz" # npm's tarball has the same name
rmdir "$out/chart"
