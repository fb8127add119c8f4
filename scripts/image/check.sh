#!/usr/bin/env bash
# Runs the steps of the Dockerfile without a container engine: assembles the files of the image in an empty root (first argument, default a temporary
# folder, removed at the end), and runs the program there as its user, with the root mounted read-only. Needs Linux and root; prints sizes and times.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ "$(id -u)" = 0 ] || exec sudo env "PATH=$PATH" "TMPDIR=${TMPDIR:-/tmp}" "$PWD/scripts/image/check.sh" "$@"
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
export TMPDIR=$temporary # npm leaves its compile cache there
chmod 755 "$temporary"
root=${1:-$temporary/root}
mkdir -p "$root"
chmod 755 "$root" # its user has to reach the files
node=$(node -p process.execPath)
in_root() { chroot --userspec=65532:65532 "$root" /usr/bin/env -i HOME=/ NODE_ENV=production NODE_COMPILE_CACHE=/app/compiled MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=65536 MALLOC_TRIM_THRESHOLD_=65536 "$@"; }

# The context of the build, as .dockerignore defines it: what is not excluded again after `*`.
mkdir "$temporary/context"
cp -r $(sed -n 's/^!//p' .dockerignore) "$temporary/context/"
ln -s "$(readlink -f node_modules)" "$temporary/context/node_modules"
"$temporary/context/scripts/image/app.sh" "$root/app"

# The content of the base image: C and C++ libraries, certificates, and `env`, which chroot needs to clear the environment.
install -D "$node" "$root/usr/local/bin/node"
install -D /usr/bin/env "$root/usr/bin/env"
for library in $(ldd "$node" /usr/bin/env | grep -o '/[^ ]*\.so[^ ]*' | sort -u) $(find "$root/app/node_modules/isolated-vm/prebuilds" -name '*.node' -exec ldd {} + | grep -o '=> /[^ ]*' | cut -c4- | sort -u); do
  install -D "$library" "$root$library"
done
mkdir -p "$root/dev" "$root/proc" "$root/etc/endpoint-syncer"
install -d -m 1777 "$root/tmp"

in_root /usr/local/bin/node /app/dist/main.js demo --once --dir /tmp/demo > /dev/null
ls "$root"/app/compiled/*/run.cjs-* > /dev/null
# With a construct that the daemon leaves to the sandbox process; fails if it does not.
in_sandbox() {
  local said
  said=$("$@" /usr/local/bin/node /app/dist/main.js eval --place "/A/i.test('a') && 'the sandbox works'" 2>&1)
  echo "$said"
  [[ $said == *'evaluated in the sandbox'*'the sandbox works'* ]]
}
in_sandbox in_root

read_only() { scripts/image/read-only.sh "$root" "$@"; }
read_only /usr/local/bin/node -e 'try { require("node:fs").writeFileSync("/app/x", ""); process.exit(1) } catch (error) { console.log("read-only root:", error.code) }'
in_sandbox read_only
# OpenShift runs the image as an arbitrary user.
USERSPEC=1000650000:0 in_sandbox read_only
start=$(date +%s%N)
read_only /usr/local/bin/node /app/dist/main.js run --help > /dev/null
echo "start: $((($(date +%s%N) - start) / 1000000)) ms"
node scripts/image/sync.ts "$root"
node -e 'const { components } = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8")); console.log("sbom:", components.length, "components")' "$root/app/sbom.cdx.json"
echo "app: $(du -sm "$root/app" | cut -f1) MB, node: $(du -m "$node" | cut -f1) MB"
