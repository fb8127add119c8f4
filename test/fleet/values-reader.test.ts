/** The thread that reads the texts of vClusters: what it returns, whose turn it is, and what a text can make of it. */

import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { decodeMemberConfig, encodeMemberConfig } from '../../src/fleet/config-transfer.ts';
import { memberConfig, type MemberSources } from '../../src/fleet/member-config.ts';
import { kubeconfigParser, ThreadReader, UnreadableError } from '../../src/fleet/values-reader.ts';
import { FakeClock, settle } from '../support/fake-clock.ts';
import { eventually } from '../support/eventually.ts';
import { kubeconfigText } from '../support/kubeconfig.ts';
import { plainReader } from './plain-reader.ts';

const OFF = 'sync: {toHost: {endpoints: {enabled: false}, endpointSlices: {enabled: false}}}\n';
const MEMBER = 'endpointSyncer: {requireService: false, selector: {matchLabels: {a: b}}}';

function sources(text: string, more: Partial<MemberSources> = {}): MemberSources {
  return {
    vcluster: { namespace: 'team-a', name: 'a' },
    values: { text, file: 'values' },
    overlay: undefined,
    defaults: { requireService: true },
    host: { kubeconfig: '', context: '', namespace: 'own' },
    ...more,
  };
}

/** As long as values may be, of many small parts. */
function longValues(lengthMin = 127_000): string {
  let text = `${OFF}x:\n`;
  for (let at = 0; text.length < lengthMin; at++) text += `- {a: [${at}, b, {c: d}]}\n`;
  return text;
}

const open: ThreadReader[] = [];
afterEach(() => Promise.all(open.splice(0).map((reader) => reader[Symbol.asyncDispose]())));

function reader(clock = systemClock): ThreadReader {
  const created = new ThreadReader(clock);
  open.push(created);
  return created;
}

const PATCHES = `
sync:
  toHost:
    endpoints:
      enabled: false
      patches: [{path: 'metadata.annotations["a"]', expression: '"b"', reverseExpression: value}]
    endpointSlices: {enabled: false}
    secrets: {enabled: true}
    customResources: {widgets.example.com: {enabled: true}}
    services: {enabled: true, patches: [{path: a, labels: {}}]}
controlPlane: {statefulSet: {labels: {a: b}}}
`;

describe('the configuration of a member is that which is read without a thread', () => {
  test.for<[string, MemberSources]>([
    ['of plain values', sources(OFF)],
    ['with patches and kinds that vCluster syncs', sources(PATCHES)],
    ['with a ConfigMap', sources(OFF, { overlay: { text: MEMBER, file: 'overlay' } })],
    [
      'with long integers, and keys that are none of a plain object',
      sources(`${OFF}x: {n: 9007199254740993, __proto__: {a: 1}}`),
    ],
    ['with a warning', sources(`${OFF}controlPlan: {}`)],
  ])('%s', async ([, given]) => {
    const read = memberConfig(given);
    const wanted =
      read.config === undefined
        ? read
        : { ...read, warnings: read.warnings.map((one) => ({ ...one, excerpt: '' })) };
    expect(read.config).toBeDefined();
    expect(await reader().memberConfig(given)).toEqual(wanted);
  });

  test('with any values', () => {
    const names = fc.constantFrom(
      'sync',
      'controlPlane',
      'x',
      'toHost',
      'enabled',
      '__proto__',
      'networking',
    );
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.boolean(),
        fc.integer(),
        fc.string(),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(names, tie('value'), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(fc.dictionary(names, value, { maxKeys: 5 }), (written) => {
        const text = JSON.stringify({ ...written, sync: { toHost: { endpoints: { enabled: false } } } });
        const read = memberConfig(sources(text));
        const got = decodeMemberConfig(encodeMemberConfig(read));
        expect(got.config).toEqual(read.config);
      }),
    );
  });

  test('that is invalid, with the reason', async () => {
    const given = sources(`${OFF}endpointSyncer: {}`);
    expect(await reader().memberConfig(given)).toEqual(memberConfig(given));
  });
});

describe('what is returned is bounded', () => {
  test.for<[string, string, RegExp]>([
    [
      'a text that aliases repeat',
      `${OFF}a: &a "${'x'.repeat(60_000)}"\nb: [${'*a,'.repeat(20_000)}*a]\n`,
      /more than 524288 characters after aliases/u,
    ],
    ['many errors', `${OFF}${'a: 1\n'.repeat(20_000)}`, /^.{4000,4200}$/su],
  ])('%s', async ([, text, reason]) => {
    const read = await reader().memberConfig(sources(text));
    expect(read.config === undefined && read.invalid).toMatch(reason);
  });

  test('many warnings', async () => {
    const keys = Array.from({ length: 5000 }, (_, at) => `    endpoint${at}: 1\n`).join('');
    const { config, warnings } = (await reader().memberConfig(
      sources(
        `sync:\n  toHost:\n    endpoints: {enabled: false}\n    endpointSlices: {enabled: false}\n${keys}`,
      ),
    )) as { config: unknown; warnings: readonly { message: string }[] };
    expect(config).toBeDefined();
    expect(warnings).toHaveLength(21);
    expect(warnings.at(-1)?.message).toMatch(/^\d{4} more warnings/u);
  });
});

test('a namespace with many long values delays that of another by one of its own', async () => {
  // However long it takes.
  const read = reader(new FakeClock());
  const order: string[] = [];
  const add = async (namespace: string, name: string, text: string): Promise<void> => {
    await read.memberConfig(sources(text, { vcluster: { namespace, name } }));
    order.push(`${namespace}/${name}`);
  };
  const long = longValues();
  const all = [
    ...Array.from({ length: 6 }, (_, at) => add('evil', `e${at}`, long)),
    ...Array.from({ length: 3 }, (_, at) => add(`good-${at}`, 'a', OFF)),
  ];
  await Promise.all(all);
  expect(order.slice(0, 5)).toEqual(['evil/e0', 'evil/e1', 'good-0/a', 'good-1/a', 'good-2/a']);
});

test('a namespace whose values take long has a twentieth of the time once it has used its burst', async () => {
  const clock = new FakeClock();
  const read = reader(clock);
  let count = 0;
  const add = (namespace: string): Promise<void> =>
    read.memberConfig(sources(OFF, { vcluster: { namespace, name: 'a' } })).then(() => void (count += 1));
  // Each takes a second of this clock.
  for (let at = 0; at < 11; at++) {
    await settle();
    const one = add('evil');
    // Before the thread can have read it.
    clock.advance(1000);
    await one;
  }
  await settle();
  const [late, other] = [add('evil'), add('good')];
  await other;
  expect(count).toBe(12);
  await clock.advanceAsync(10_000);
  await late;
  expect(count).toBe(13);
});

test('what takes too much processor time is ended, and the next text is read by another thread', async () => {
  const clock = new FakeClock();
  let usedMs = 700;
  const read = new ThreadReader(clock, () => Promise.resolve(usedMs));
  open.push(read);
  const states: string[] = [];
  const slow = read.memberConfig(sources(longValues()));
  const ended = slow.catch((error: unknown) => {
    states.push('ended');
    return error;
  });
  await settle();
  // On a busy machine, it has hardly run.
  for (usedMs of [800, 5699]) {
    await clock.advanceAsync(5000);
    states.push(`goes on at ${usedMs}`);
  }
  usedMs = 5700;
  await clock.advanceAsync(500);
  expect(await ended).toBeInstanceOf(UnreadableError);
  expect(states).toEqual(['goes on at 800', 'goes on at 5699', 'ended']);
  const other = sources(OFF, { vcluster: { namespace: 'team-b', name: 'b' } });
  expect((await read.memberConfig(other)).config).toBeDefined();
});

test('the thread ends when it is idle, and with the fleet, which rejects what it reads', async () => {
  const clock = new FakeClock();
  const read = reader(clock);
  const threads = (): number =>
    process.getActiveResourcesInfo().filter((one) => one === 'MessagePort').length;
  const before = threads();
  await read.memberConfig(sources(OFF));
  expect(threads()).toBeGreaterThan(before);
  clock.advance(30_000);
  await eventually(threads, (count) => count === before, { what: 'the end of the thread' });
  // One namespace has used its share, so that it has to wait for the next one.
  for (let at = 0; at < 3; at++) {
    const one = read.memberConfig(sources(OFF));
    await settle();
    clock.advance(4000);
    await one;
  }
  const slow = read.memberConfig(sources(longValues(), { vcluster: { namespace: 'b', name: 'b' } }));
  const waiting = [OFF, OFF].map((text) => read.memberConfig(sources(text)));
  const ended = Promise.all([slow, ...waiting].map((one) => one.catch((error: unknown) => String(error))));
  await settle();
  await read[Symbol.asyncDispose]();
  expect(new Set(await ended)).toEqual(new Set(['TransportError: the fleet is stopping']));
});

test('a kubeconfig is parsed once for each text, and is no longer than values', async () => {
  const texts: string[] = [];
  const parse = kubeconfigParser(
    {
      async kubeconfig(vcluster, text, source) {
        texts.push(text);
        return plainReader.kubeconfig(vcluster, text, source);
      },
    },
    { namespace: 'team-a' },
    new AbortController().signal,
  );
  const [one, two] = ['1', '2'].map((token) => kubeconfigText('vc', { server: 'https://a' }, { token }));
  for (const text of [one, one, two, two, one]) await parse(text ?? '', 'Secret');
  expect(texts).toEqual([one, two, one]);
  await expect(parse(' '.repeat(131_073), 'Secret')).rejects.toThrow('more than 131072 characters');
});

test('a sync that ends does not wait for its kubeconfig', async () => {
  const ending = new AbortController();
  const kubeconfig = (): Promise<never> => new Promise<never>(() => undefined);
  const parsed = kubeconfigParser({ kubeconfig }, { namespace: 'team-a' }, ending.signal)('a', 'Secret');
  ending.abort(new Error('the member ends'));
  await expect(parsed).rejects.toThrow('the member ends');
});

test('a kubeconfig is read there too', async () => {
  const text = kubeconfigText('vc', { server: 'https://a' }, { token: '123' });
  const read = reader();
  const config = await read.kubeconfig({ namespace: 'team-a' }, text, 'Secret team-a/vc-a');
  expect(config).toMatchObject({
    source: 'Secret team-a/vc-a',
    users: [{ name: 'vc', fields: { token: '123' } }],
  });
  await expect(read.kubeconfig({ namespace: 'team-a' }, '[', 'Secret team-a/vc-a')).rejects.toThrow(
    'Secret team-a/vc-a is not YAML: line 1',
  );
});
