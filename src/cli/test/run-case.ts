/** Runs one test case offline, in the directions for which it has expectations. */

import { objectKey, type KubeObject } from '../../kube/object.ts';
import { renderToHost, renderToVirtual } from '../../syncer/render.ts';
import { inNamespace, type OfflineSync } from '../offline/offline-sync.ts';
import { renderKinds } from '../offline/render-kinds.ts';
import type { Mismatch } from './compare.ts';
import { compareOutcome } from './expectations.ts';
import { outcomeOf, type Outcome } from './outcome.ts';
import { roundTrips } from './round-trip.ts';
import type { TestCase } from './test-file.ts';

export interface CaseRun {
  readonly forward: Outcome;
  /** Undefined: the case has no expectations for it. */
  readonly reverse: Outcome | undefined;
  /** Where an expectation does not hold. */
  readonly mismatches: readonly Mismatch[];
  /** Where the round trip is not the identity: no expectation could be changed so that it holds. */
  readonly brokenRoundTrip: readonly Mismatch[];
}

/** `optionsForKinds` as in {@link OfflineSync}: a coverage run observes the pipelines there. */
export async function runCase(
  test: TestCase,
  sync: Pick<OfflineSync, 'config' | 'optionsForKinds'>,
): Promise<CaseRun> {
  const world = {
    virtual: inNamespace(test.virtual, 'default'),
    host: inNamespace(test.host, sync.config.host.namespace),
  };
  const kinds = sync.optionsForKinds(world);
  const rendered = await renderKinds(kinds, (options) => renderToHost(world, options));
  const forward = outcomeOf(rendered, 'host');
  const copies = rendered.flatMap((one) => (one.kind === 'object' ? [one.object] : []));
  const mismatches = compareOutcome('', test.expect, forward);
  const brokenRoundTrip = test.roundTrip ? await roundTrips(world, copies, kinds) : [];
  if (test.reverse === undefined || kinds.length === 0)
    return { forward, reverse: undefined, mismatches, brokenRoundTrip };
  const changed = { virtual: world.virtual, host: hostAfter(world.host, copies) };
  const back = await renderKinds(sync.optionsForKinds(changed), (options) =>
    renderToVirtual(changed, options),
  );
  const reverse = outcomeOf(back, 'virtual');
  mismatches.push(...compareOutcome('reverse: ', test.reverse, reverse));
  return { forward, reverse, mismatches, brokenRoundTrip };
}

/** The host objects that flow back: those of the case; where it gives none, or only a name, the copy of the forward run. */
function hostAfter(given: readonly KubeObject[], copies: readonly KubeObject[]): KubeObject[] {
  const isWritten = (object: KubeObject): boolean =>
    object.metadata.annotations !== undefined ||
    Object.keys(object).some((key) => !['apiVersion', 'kind', 'metadata'].includes(key));
  const idOf = (object: KubeObject): string => `${object.kind ?? ''} ${objectKey(object)}`;
  const written = new Map(given.filter(isWritten).map((object) => [idOf(object), object]));
  return [...written.values(), ...copies.filter((copy) => !written.has(idOf(copy)))];
}
