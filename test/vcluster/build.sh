#!/usr/bin/env bash
# build.sh SOURCE FOLDER: builds vCluster from a clone of its repository (bare or not) into FOLDER: vcluster, and chart, a link. Needs Go >= 1.26. Of
# vendored files that the clone lacks (the largest ones of SQLite), the same module version is downloaded.
set -euo pipefail
source=$(cd "$1" && pwd) out=$(mkdir -p "$2" && cd "$2" && pwd)
[ -x "$out/vcluster" ] && exit
rm -rf "$out/checkout"
git clone -q --shared --no-checkout "$source" "$out/checkout"
cd "$out/checkout"
git checkout -q HEAD -- . 2> /dev/null || true
missing=$(git ls-files --deleted)
if [ -n "$missing" ]; then
  module=modernc.org/sqlite
  version=$(sed -n "s,^\t$module \(v[^ ]*\).*,\1,p" go.mod)
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  from=$(cd "$work" && printf 'module x\n' > go.mod && go mod download -json "$module@$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  for file in $missing; do install -D -m 0644 "$from/${file#vendor/"$module"/}" "$file"; done
fi
if [ -n "$(git status --porcelain --untracked-files=no)" ]; then
  echo "the clone of $source lacks files of its commit, which no module has" >&2
  exit 1
fi
go build -mod=vendor -ldflags "-X github.com/loft-sh/vcluster/pkg/telemetry.SyncerVersion=0.37.0" -o "$out/vcluster.new" ./cmd/vcluster
ln -sfn "$out/checkout/chart" "$out/chart"
mv "$out/vcluster.new" "$out/vcluster"
