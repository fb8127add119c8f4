/** References in the member `ref` of an object, translated by one patch. */

import type { ReferenceConfig } from '../../../src/syncer/patch/patch-schema.ts';
import type { JsonValue } from '../../../src/base/json.ts';
import type { Direction, PatchContext, PatchedObject } from '../../../src/syncer/patch/types.ts';
import { build, context, type BuildOptions } from './build.ts';

export const SECRET: ReferenceConfig = { apiVersion: 'v1', kind: 'Secret' };
export const PARTS: ReferenceConfig = {
  ...SECRET,
  namePath: 'name',
  namespacePath: 'namespace',
  kindPath: 'kind',
  apiVersionPath: 'apiVersion',
};
export const MAPPINGS = {
  mode: { kind: 'mappings', byName: { team: 'host-team', default: 'host-default' }, mappingsOnly: true },
} as const;

export interface Job extends BuildOptions {
  readonly reference?: ReferenceConfig;
  readonly path?: string;
  readonly direction?: Direction;
  readonly context?: Partial<PatchContext>;
}

export async function translate(ref: JsonValue, job: Job = {}): Promise<PatchedObject> {
  const { pipeline } = build([{ path: job.path ?? 'ref', reference: job.reference ?? SECRET }], job);
  return pipeline.apply(job.direction ?? 'toHost', { ref }, context(job.context));
}

export async function toHost(ref: JsonValue, job: Job = {}): Promise<JsonValue | undefined> {
  return (await translate(ref, job)).object['ref'];
}

export async function toVirtual(ref: JsonValue, job: Job = {}): Promise<JsonValue | undefined> {
  const { object, unresolved } = await translate(ref, { ...job, direction: 'toVirtual' });
  for (const { error } of unresolved) throw error;
  return object['ref'];
}
