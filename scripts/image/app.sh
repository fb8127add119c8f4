#!/usr/bin/env bash
# Assembles the project's part of the image in a folder (first argument): the built program, isolated-vm, and an SBOM.
set -euo pipefail
out=${1:?folder}
cd "$(dirname "$0")/../.."
npm run --silent build
mkdir -p "$out"
cp -r dist config LICENSE "$out/"
node scripts/published-manifest.ts > "$out/package.json"
npm run --silent sbom > "$out/sbom.cdx.json"
# All that is not bundled, as npm ci has installed and verified it.
mkdir -p "$out/node_modules"
cp -rL node_modules/isolated-vm node_modules/node-gyp-build "$out/node_modules/"
cd "$out"
# Remove binaries for other platforms, and sources.
node -e '
const { readdirSync, rmSync } = require("node:fs");
const { join } = require("node:path");
const prebuilds = "node_modules/isolated-vm/prebuilds";
for (const name of readdirSync(prebuilds)) {
  if (name !== `${process.platform}-${process.arch}`) rmSync(join(prebuilds, name), { recursive: true });
}
for (const folder of ["native-example", "src", "vendor"]) rmSync(join("node_modules/isolated-vm", folder), { recursive: true, force: true });
for (const name of readdirSync("node_modules", { recursive: true })) {
  if (/\.(d\.[cm]?ts|map|md|tgz)$/.test(name)) rmSync(join("node_modules", name));
}
'
# Only the user of the container may write here, and only while the image is built.
install -d -m 0755 compiled && chown 65532:65532 compiled
