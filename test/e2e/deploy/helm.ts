/** Runs Helm, the program that `HELM` names or one that is built once from its Go module, and reads what the chart renders. */

import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import type { PolicyRule } from '../../../src/fleet/granted-rights.ts';
import { builtProgram } from './built-program.ts';

export const CHART = join(import.meta.dirname, '..', '..', '..', 'charts', 'endpoint-syncer');
/** Sets of values, where chart-testing looks for them. */
export const SETS = readdirSync(join(CHART, 'ci')).map((name) => name.replace('-values.yaml', ''));
const run = promisify(execFile);

/** Runs Helm with its state below `home` and returns its standard output. */
export async function helm(home: string, ...args: readonly string[]): Promise<string> {
  const env = { PATH: process.env['PATH'], HOME: home, HELM_CACHE_HOME: home, HELM_CONFIG_HOME: home };
  const { stdout } = await run(await helmProgram(), args, { env, maxBuffer: 16 * 1024 * 1024 });
  return stdout;
}

/** Its path; the first call may build it. */
export async function helmProgram(): Promise<string> {
  return process.env['HELM'] ?? builtProgram('helm', 'helm.sh/helm/v4');
}

export function valuesFile(set: string): string {
  return join(CHART, 'ci', `${set}-values.yaml`);
}

export interface RenderedObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly PolicyRule[];
  readonly data?: Readonly<Record<string, string>>;
}

export function objectsIn(text: string): readonly RenderedObject[] {
  const documents = parseAllDocuments(text).map((document) => document.toJSON() as RenderedObject | null);
  return documents.filter((document) => document !== null);
}

/** The configuration file in the ConfigMap. */
export function configOf(objects: readonly RenderedObject[]): string {
  return objects.find(({ data }) => data?.['config.yaml'] !== undefined)?.data?.['config.yaml'] ?? '';
}

/** What `rbac` prints for a configuration file and the host. */
export async function rbac(file: string): Promise<readonly RenderedObject[]> {
  const program = join(CHART, '..', '..', 'src', 'main.ts');
  const args = [program, 'rbac', '--config', file, '--cluster', 'host', '-o', 'json'];
  const { stdout } = await run(process.execPath, args);
  return (JSON.parse(stdout) as { items: RenderedObject[] }).items; // what the command documents
}

/** Sorted lines such as `Role team-a get secrets./a`, which do not depend on how the rules are grouped. */
export function granted(objects: readonly RenderedObject[]): string[] {
  const lines = objects.flatMap(({ kind, metadata: { namespace = '' }, rules = [] }) =>
    rules.flatMap(({ apiGroups, resources, resourceNames = ['*'], verbs }) =>
      verbs.map((verb) => `${kind} ${namespace} ${verb} ${resources[0]}.${apiGroups[0]}/${resourceNames[0]}`),
    ),
  );
  return lines.toSorted((a, b) => (a < b ? -1 : 1));
}
