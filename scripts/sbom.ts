/**
 * Prints the SBOM (CycloneDX) of the built program: Node.js, which it runs on, the packages that `dist/` contains, and those that are installed
 * beside it.
 */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundledPackages } from './bundled-packages.ts';

interface Component {
  readonly 'bom-ref': string;
  readonly name: string;
}
interface Dependency {
  readonly ref: string;
  readonly dependsOn: readonly string[];
}
interface Sbom {
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly Dependency[];
}

interface Manifest {
  readonly name: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

const ROOT = join(import.meta.dirname, '..');
const { name, dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest; // our own file
const all = lockedPackages();
const root = all.metadata.component['bom-ref'];
const bundled = new Set(bundledPackages().map((one) => `${one.name}@${one.version}`));
const beside = Object.entries(dependencies)
  .map(([dependency, version]) => `${dependency}@${version}`)
  .filter((ref) => !bundled.has(ref));
const shipped = new Set([...bundled, ...beside.flatMap((ref) => [ref, ...dependenciesOf(ref)])]);
const node = nodeComponent(process.versions.node);
const sbom: Sbom = {
  ...all,
  // npm names it after the folder of the checkout.
  metadata: { ...all.metadata, component: { ...all.metadata.component, name } },
  components: [node, ...all.components.filter((component) => shipped.has(component['bom-ref']))],
  dependencies: [
    { ref: root, dependsOn: [node['bom-ref'], ...dependenciesOf(root).filter((ref) => shipped.has(ref))] },
    ...[...shipped].map((ref) => ({ ref, dependsOn: dependenciesOf(ref).filter((one) => shipped.has(one)) })),
    { ref: node['bom-ref'], dependsOn: [] },
  ],
};
process.stdout.write(`${JSON.stringify(sbom, undefined, 2)}\n`);

function dependenciesOf(ref: string): readonly string[] {
  return all.dependencies.find((dependency) => dependency.ref === ref)?.dependsOn ?? [];
}

/** All of the lock file: with `--omit=dev`, npm leaves out what packages for development need too. */
function lockedPackages(): Sbom {
  const args = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx'];
  const text = execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  return JSON.parse(text) as Sbom; // npm's format
}

/** No package of npm; scanners find its vulnerabilities by the CPE. */
function nodeComponent(version: string): Component & Readonly<Record<string, unknown>> {
  return {
    'bom-ref': `node@${version}`,
    type: 'platform',
    name: 'node',
    version,
    scope: 'required',
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    purl: `pkg:generic/node@${version}`,
    licenses: [{ license: { id: 'MIT' } }],
  };
}
