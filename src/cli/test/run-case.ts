/** Runs one test case offline, in the directions for which it has expectations. */

import { objectKey, type KubeObject } from '../../kube/object.ts';
import type { Config } from '../../config/types.ts';
import { createTranslators } from '../../syncer/translation.ts';
import { inNamespace, renderToHost, renderToVirtual, type OfflineOptions } from '../offline/offline-sync.ts';
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

export async function runCase(test: TestCase, config: Config, options: OfflineOptions): Promise<CaseRun> {
  const world = {
    virtual: inNamespace(test.virtual, 'default'),
    host: inNamespace(test.host, config.host.namespace),
  };
  const { rendered, pipelines } = await renderToHost(world, config, options);
  const forward = outcomeOf(rendered, 'host');
  const copies = rendered.flatMap((one) => (one.kind === 'object' ? [one.object] : []));
  const mismatches = compareOutcome('', test.expect, forward);
  const brokenRoundTrip = test.roundTrip
    ? await roundTrips(world, copies, pipelines, createTranslators(config))
    : [];
  if (test.reverse === undefined || pipelines.length === 0)
    return { forward, reverse: undefined, mismatches, brokenRoundTrip };
  const changed = { virtual: world.virtual, host: hostAfter(world.host, copies) };
  const back = await renderToVirtual(changed, config, options);
  const reverse = outcomeOf(back.rendered, 'virtual');
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
