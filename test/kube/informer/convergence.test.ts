/**
 * The cache, and a replay of its events, converge to the state of the server under any faults. fast-check generates the
 * history and the faults.
 */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CacheEvent } from '../../../src/kube/types.ts';
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
  refuse,
  watch,
  type Item,
  type Step,
} from '../scripted-server.ts';

interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly item: Item & { version: number; uid: string };
}

/** A server with a memory: every change has a version, as in etcd. */
class History {
  readonly changes: Change[] = [];
  readonly #state = new Map<string, Change['item']>();
  #version = 10;

  apply(name: string, wantsDelete: boolean): void {
    this.#version += 1;
    const held = this.#state.get(name);
    if (wantsDelete && held === undefined) return;
    const uid = held?.uid ?? `${name}-${this.#version}`;
    const item = { name, uid, version: this.#version };
    this.changes.push({ type: wantsDelete ? 'DELETED' : held === undefined ? 'ADDED' : 'MODIFIED', item });
    if (wantsDelete) this.#state.delete(name);
    else this.#state.set(name, item);
  }

  get state(): Record<string, string> {
    const pairs = [...this.#state.values()].map(({ name, version }) => [name, String(version)] as const);
    return Object.fromEntries(pairs);
  }

  listed(): Step {
    return list(this.#version, [...this.#state.values()]);
  }

  /** Everything after the requested version, with repeated earlier events. */
  linesAfter(version: number, replays: number): string[] {
    const news = this.changes.filter(({ item }) => item.version > version);
    const old = this.changes.filter(({ item }) => item.version <= version).slice(-replays);
    const lines = [...(replays === 0 ? [] : old), ...news].map(({ type, item }) => eventLine(type, item));
    return [...lines, bookmarkLine(Math.max(version, this.#version))];
  }
}

type Fault = 'none' | 'cut' | 'expired' | 'brief' | 'html' | 'hang-up' | 'refuse' | 'replay';

const FAULTS: readonly Fault[] = ['none', 'cut', 'expired', 'brief', 'html', 'hang-up', 'refuse', 'replay'];

function watchStep(history: History, fault: Fault): Step {
  return (response, request) => {
    const version = Number(request.url.searchParams.get('resourceVersion'));
    const lines = history.linesAfter(version, fault === 'replay' ? 3 : 0);
    const half = lines.slice(0, Math.ceil(lines.length / 2));
    const steps: Record<Fault, Step> = {
      none: watch(...lines),
      replay: watch(...lines, ...lines.slice(0, 2)),
      cut: cutWatch(...half, '{"type":"MODIFIED","obj'),
      expired: watch(...half, errorLine(410, 'Expired')),
      brief: endedWatch(...half),
      html: htmlPage(502),
      'hang-up': hangUp,
      refuse: refuse(403, 'Forbidden'),
    };
    steps[fault](response, request);
  };
}

const round = fc.record({
  fault: fc.constantFrom(...FAULTS),
  changes: fc.array(fc.record({ name: fc.constantFrom('a', 'b', 'c'), isDelete: fc.boolean() }), {
    maxLength: 6,
  }),
});

/** The state according to the events alone; throws for an event that contradicts the ones before it. */
function replayed(events: readonly CacheEvent[]): Record<string, string> {
  const state: Record<string, string> = {};
  for (const { type, object } of events) {
    const { name, resourceVersion = '' } = object.metadata;
    if (name in state !== (type !== 'added'))
      throw new Error(`${type} ${name} after ${JSON.stringify(state)}`);
    if (type === 'deleted') delete state[name];
    else state[name] = resourceVersion;
  }
  return state;
}

/** Adversarial responses, then a working server. */
async function live(
  harness: InformerHarness,
  history: History,
  rounds: readonly { fault: Fault; changes: readonly { name: string; isDelete: boolean }[] }[],
): Promise<void> {
  const lists = (): Step => (response, request) => history.listed()(response, request);
  harness.server.on('list', ...Array.from({ length: rounds.length + 2 }, lists));
  harness.start();
  for (const { fault, changes } of rounds) {
    for (const { name, isDelete } of changes) history.apply(name, isDelete);
    if (fault === 'none' || fault === 'replay') continue; // the next watch shows it
    harness.server.on('watch', watchStep(history, fault));
    await until(() => harness.informer.condition.phase === 'waiting');
    harness.clock.advance(harness.clock.nextDelayMs ?? 0);
    await quiet(1); // the next attempt has begun
  }
  const last = rounds.at(-1)?.fault === 'replay' ? 'replay' : 'none';
  harness.server.on('watch', watchStep(history, last));
  const bookmarks = harness.metrics.types.filter((type) => type === 'BOOKMARK').length;
  await until(() => harness.metrics.types.filter((type) => type === 'BOOKMARK').length > bookmarks);
}

describe('an informer converges', () => {
  test('to the state of the server, through any sequence of faults', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(round, { maxLength: 6 }), async (rounds) => {
        const history = new History();
        history.apply('a', false);
        await using harness = await prepare();
        await live(harness, history, rounds);
        expect(contents(harness.informer)).toEqual(history.state);
        expect(replayed(harness.events)).toEqual(history.state);
      }),
      { numRuns: 60 },
    );
  });
});
