/** Prints the SBOM (CycloneDX) of the built package: the packages that `dist/` contains, and those that are installed beside it. */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Sbom {
  components: { 'bom-ref': string }[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

const ROOT = join(import.meta.dirname, '..');
const licenses = readFileSync(join(ROOT, 'dist/third-party-licenses.txt'), 'utf8');
const bundled = [...licenses.matchAll(/^## (\S+@\S+) /gmu)].map(([, name = '']) => name);
const installed = sbom('--omit=dev');
const all = sbom();
const shipped = new Set([
  ...bundled,
  ...installed.components.map((component) => component['bom-ref']),
  ...installed.dependencies.map(({ ref }) => ref),
]);
const isShipped = (ref: string): boolean => shipped.has(ref);
const shippedPart: Sbom = {
  ...all,
  components: all.components.filter((component) => isShipped(component['bom-ref'])),
  dependencies: all.dependencies
    .filter(({ ref }) => isShipped(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(isShipped) })),
};
process.stdout.write(`${JSON.stringify(shippedPart, undefined, 2)}\n`);

/** Of the lock file. */
function sbom(...options: readonly string[]): Sbom {
  const args = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx', ...options];
  const text = execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  return JSON.parse(text) as Sbom; // npm's format
}
