#!/usr/bin/env node
// The command of the installed package. In a checkout, `npm run --silent cli --` runs src/main.ts instead.
// No static imports and no top-level await: an older Node must get as far as the message.

const [major, minor] = process.versions.node.split('.').map(Number);

if (major < 24 || (major === 24 && minor < 12)) {
  process.stderr.write(
    `endpoint-syncer needs Node.js 24.12 or newer, but this is ${process.version} (${process.execPath})\n`,
  );
  process.exitCode = 1;
} else {
  void start();
}

async function start() {
  const { enableCompileCache } = await import('node:module');
  // Below the user's own home: compiled code is trusted as code is, so no other user may be able to write it. Without effect where the
  // folder cannot be written, or where NODE_COMPILE_CACHE is set.
  const { XDG_CACHE_HOME: cache, HOME: home } = process.env;
  const folder = cache || (home && `${home}/.cache`);
  if (folder) enableCompileCache(`${folder}/endpoint-syncer/compiled`);
  await import('../dist/main.js');
}
