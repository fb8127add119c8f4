/**
 * package.json of the published package, whose dependencies are those that the build does not bundle. Prints it; with `write` replaces package.json
 * until `restore`, which npm runs before and after it packs.
 */

import { copyFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundledPackages } from './bundled-packages.ts';

const ROOT = join(import.meta.dirname, '..');
const MANIFEST = join(ROOT, 'package.json');
const SAVED = join(ROOT, '.package.json.packing');

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

function published(): string {
  const { devDependencies: _, ...manifest } = JSON.parse(readFileSync(MANIFEST, 'utf8')) as Manifest; // our own file
  const bundled = new Set(bundledPackages().map(({ name }) => name));
  const dependencies = Object.entries(manifest.dependencies).filter(([name]) => !bundled.has(name));
  return `${JSON.stringify({ ...manifest, dependencies: Object.fromEntries(dependencies) }, null, 2)}\n`;
}

const mode = process.argv[2];
if (mode === 'restore') renameSync(SAVED, MANIFEST);
else if (mode === 'write') {
  // Left by npm, if it was killed while it packed.
  if (existsSync(SAVED)) renameSync(SAVED, MANIFEST);
  copyFileSync(MANIFEST, SAVED);
  writeFileSync(MANIFEST, published());
} else process.stdout.write(published());
