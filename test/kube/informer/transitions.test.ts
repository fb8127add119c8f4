/** src/kube/informer/README.md is the specification: its table equals the one in the code, and every row is tested on real sockets. */

import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { allTransitions, type Outcome, type Phase } from '../../../src/kube/informer/transitions.ts';
import { contents, prepare, quiet, until, type InformerHarness } from '../informer-harness.ts';
import {
  bookmarkLine,
  cutWatch,
  endedWatch,
  errorLine,
  eventLine,
  hangUp,
  htmlPage,
  list,
  raw,
  refuse,
  watch,
  type Step,
} from '../scripted-server.ts';

const DOCUMENT = join(import.meta.dirname, '../../../src/kube/informer/README.md');

interface Row {
  readonly phase: string;
  readonly outcome: string;
  readonly next: string;
  readonly wait: string;
}

/** Rows of the form `| listing | malformed | … | listing | back-off |`. */
function documentedRows(): Row[] {
  return readFileSync(DOCUMENT, 'utf8')
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim().replaceAll('`', '')))
    .filter((cells) => cells.length === 7 && (cells[1] === 'listing' || cells[1] === 'watching'))
    .map(([, phase = '', outcome = '', , next = '', wait = '']) => ({ phase, outcome, next, wait }));
}

const ROWS = allTransitions().map(([phase, outcome, { next, wait }]) => ({ phase, outcome, next, wait }));
const STATE = [{ name: 'a', version: 10 }];

/** How the adversary brings each row about, when the phase it happens in is reached. */
interface Scene {
  readonly steps: readonly Step[];
  /** Of the watches before a second list. */
  readonly watches?: readonly Step[];
  /** Moves the clock to where the outcome happens. */
  act?(harness: InformerHarness): Promise<void>;
  /** Our own code fails on the first object it sees in the phase. */
  readonly isDefect?: boolean;
  readonly responseBytesMax?: number;
}

/** The watch has started on both sides: the client has received a bookmark. */
async function afterFirstBookmark(harness: InformerHarness, advanceMs: number): Promise<void> {
  await until(() => harness.metrics.types.includes('BOOKMARK'));
  harness.clock.advance(advanceMs);
}

async function afterBackOff({ clock, informer }: InformerHarness): Promise<void> {
  await until(() => informer.condition.phase === 'waiting');
  clock.advance(clock.nextDelayMs ?? 0);
}

/** A watch that the test can end in an orderly way. */
function endableWatch(): { step: Step; end: () => void } {
  const opened: ServerResponse[] = [];
  return {
    step(response, request) {
      watch(bookmarkLine(10))(response, request);
      opened.push(response);
    },
    end: () => opened.forEach((response) => response.end()),
  };
}

const endable = endableWatch();

const SCENES: Record<string, Scene> = {
  'listing complete': { steps: [list(10, STATE)] },
  'listing restored': {
    steps: [list(10, [{ name: 'a', version: 9 }]), list(12, [{ name: 'a', version: 8 }])],
    watches: [refuse(410, 'Gone')],
    act: (harness) => afterBackOff(harness),
  },
  'listing malformed': { steps: [raw(200, '{"items": [')] },
  'listing expired': { steps: [list(10, STATE, 'more'), refuse(410, 'Expired')] },
  'listing oversized': { steps: [raw(200, ' '.repeat(5000))], responseBytesMax: 4000 },
  'listing unreachable': { steps: [hangUp] },
  'listing unauthorized': { steps: [refuse(401, 'Unauthorized')] },
  'listing forbidden': { steps: [refuse(403, 'Forbidden')] },
  'listing throttled': { steps: [refuse(429, 'TooManyRequests', { 'retry-after': '3' })] },
  'listing rejected': { steps: [refuse(404, 'NotFound')] },
  'listing failed': { steps: [htmlPage(502)] },
  'listing defect': { steps: [list(10, [{ name: 'poison', version: 9 }])], isDefect: true },
  'watching ended': {
    steps: [endable.step],
    async act(harness) {
      await afterFirstBookmark(harness, 1000);
      endable.end();
    },
  },
  'watching brief': { steps: [endedWatch(eventLine('MODIFIED', { name: 'a', version: 11 }))] },
  'watching dropped': {
    steps: [cutWatch(eventLine('MODIFIED', { name: 'a', version: 11 }), '{"type":"MODI')],
  },
  'watching silent': {
    steps: [watch(bookmarkLine(10))],
    act: (harness) => afterFirstBookmark(harness, 150_000),
  },
  'watching malformed': { steps: [watch('{"type":"ADDED","object":{}}\n')] },
  'watching expired': { steps: [watch(errorLine(410, 'Expired'))] },
  'watching rewound': { steps: [watch(bookmarkLine(9))] },
  'watching interrupted': {
    steps: [cutWatch(bookmarkLine(10))],
    async act(harness) {
      harness.server.tellsNoVersion = false;
      await afterBackOff(harness);
      await until(() => harness.server.count('version') === 1);
      harness.clock.advance(5001);
      harness.server.on('version', list(10, []));
    },
  },
  'watching unreachable': { steps: [hangUp] },
  'watching unauthorized': { steps: [refuse(401, 'Unauthorized')] },
  'watching forbidden': { steps: [refuse(403, 'Forbidden')] },
  'watching throttled': { steps: [refuse(429, 'TooManyRequests', { 'retry-after': '3' })] },
  'watching rejected': { steps: [refuse(400, 'BadRequest')] },
  'watching failed': { steps: [htmlPage(503)] },
  'watching defect': { steps: [watch(eventLine('ADDED', { name: 'poison', version: 11 }))], isDefect: true },
};

async function reach(scene: Scene, phase: Phase): Promise<InformerHarness> {
  let isArmed = scene.isDefect === true;
  const harness = await prepare({
    transform(object) {
      if (isArmed && object.metadata.name === 'poison') {
        isArmed = false;
        throw new Error('poisoned');
      }
      return object;
    },
    ...(scene.responseBytesMax === undefined ? {} : { responseBytesMax: scene.responseBytesMax }),
  });
  if (phase === 'watching') harness.server.on('list', list(10, STATE));
  harness.server.on(phase === 'listing' ? 'list' : 'watch', ...scene.steps);
  harness.server.on('watch', ...(scene.watches ?? []));
  harness.start();
  await scene.act?.(harness);
  return harness;
}

describe('the table of the list-watch', () => {
  test('in the document equals the one in the code', () => {
    expect(documentedRows()).toEqual(ROWS);
  });

  test('has one scenario for every row', () => {
    expect(Object.keys(SCENES).toSorted()).toEqual(
      ROWS.map(({ phase, outcome }) => `${phase} ${outcome}`).toSorted(),
    );
  });

  test.each(ROWS)('$phase, $outcome → $next, wait: $wait', async ({ phase, outcome, next, wait }) => {
    const scene = SCENES[`${phase} ${outcome}`];
    if (scene === undefined) throw new Error('no scene');
    await using harness = await reach(scene, phase);
    const { server, metrics, informer } = harness;
    const hasEnded = (): boolean => metrics.ends.some((end) => isEnd(end, phase, outcome));
    await until(hasEnded, `${phase} ${outcome}, saw ${JSON.stringify(metrics.ends)}`);
    // Whatever ends a watch, the cache keeps what it holds.
    const held = phase === 'watching' ? ['a'] : [];
    expect(Object.keys(contents(informer))).toEqual(expect.arrayContaining(held));
    const kind = next === 'listing' ? 'list' : 'watch';
    if (wait === 'back-off') await expectBackOff(harness, kind, outcome === 'throttled' ? 3000 : 0);
    else await until(() => server.count(kind) >= (phase === 'watching' ? 2 : 1), `another ${kind}`);
    // After any failure: once the server works, the cache equals its state.
    server.on('list', list(20, [{ name: 'b', version: 15 }]));
    server.on(
      'watch',
      watch(eventLine('ADDED', { name: 'c', version: 21 })),
      watch(eventLine('ADDED', { name: 'c', version: 21 })),
    );
    await until(() => informer.get('default/c') !== undefined);
    expect(contents(informer)['c']).toBe('21');
    expect([informer.isSynced, informer.condition.lastError]).toEqual([true, undefined]);
  });
});

/** The delay is the server's plus half of 0.8 s: no request before it, then exactly one. */
async function expectBackOff(
  { server, clock, informer }: InformerHarness,
  kind: 'list' | 'watch',
  retryAfterMs: number,
): Promise<void> {
  await until(() => informer.condition.phase === 'waiting');
  const requests = server.seen.length;
  const count = server.count(kind);
  await quiet();
  expect(server.seen.length, 'asked again before its time').toBe(requests);
  expect(informer.condition.lastError).toBeDefined();
  expect(clock.nextDelayMs).toBe(retryAfterMs + 400);
  clock.advance(clock.nextDelayMs ?? 0);
  await until(() => server.count(kind) === count + 1, `another ${kind}`);
}

function isEnd(end: { phase: Phase; outcome: Outcome }, phase: Phase, outcome: Outcome): boolean {
  return end.phase === phase && end.outcome === outcome;
}
