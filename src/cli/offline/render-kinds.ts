/** The objects of several synced kinds rendered together. */

import { objectKey, type KubeObject } from '../../kube/object.ts';
import type { Rendered, RenderOptions } from '../../syncer/render.ts';

/** Patches of several kinds may name the same object: its import is in the result once. */
export async function renderKinds<Options extends RenderOptions>(
  kinds: readonly Options[],
  render: (options: Options) => Promise<Rendered[]>,
): Promise<Rendered[]> {
  const rendered = (await Promise.all(kinds.map(render))).flat();
  const seen = new Set<string>();
  return rendered.filter((one) => {
    const id = importIdOf(one);
    if (id === undefined) return true;
    const isFirst = !seen.has(id);
    seen.add(id);
    return isFirst;
  });
}

/** Undefined: the result is about an object of a synced kind, which only one entry of the list can be about. */
function importIdOf(one: Rendered): string | undefined {
  switch (one.kind) {
    case 'object':
    case 'elsewhere':
      return `${one.kind} ${objectId(one.object)}`;
    case 'refused':
      return `${one.kind} ${one.what}`;
    case 'skipped':
    case 'failed':
      return undefined;
  }
}

function objectId(object: KubeObject): string {
  return `${object.apiVersion ?? ''} ${object.kind ?? ''} ${objectKey(object)}`;
}
