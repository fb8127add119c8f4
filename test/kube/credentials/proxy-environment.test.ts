/** What NO_PROXY excepts, beside Go (golang.org/x/net/http/httpproxy). */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { proxyFromEnvironment } from '../../../src/kube/credentials/proxy-environment.ts';
import { hasGo } from '../../support/go-program.ts';
import { PROXY, proxiesInGo } from './connections.ts';

const RUNS = 5000;
/** Of the generated servers and lists; another one finds others. */
const SEED = Number(process.env['PROXY_SEED'] ?? 1);

interface Case {
  readonly server: string;
  readonly noProxy: string;
}

/** '' without a proxy. */
function proxyOf({ server, noProxy }: Case): string {
  const env = { HTTPS_PROXY: PROXY, HTTP_PROXY: PROXY, NO_PROXY: noProxy };
  return proxyFromEnvironment(new URL(server), env) ?? '';
}

/** One value in several texts, and neighbours of it. */
const ADDRESSES =
  '10.0.0.1 10.0.0.2 10.96.0.1 127.0.0.1 127.8.9.1 [::ffff:10.0.0.1] [::ffff:a00:1] [0:0:0:0:0:ffff:10.0.0.1] [::ffff:127.0.0.1] [fd00::1] [FD00:0::0001] [fd00::2] [::1] [::] [::a00:1] [64:ff9b::a00:1]'.split(
    ' ',
  );
const DOMAINS =
  'example.com api.example.com a.b.example.com aexample.com example.com. localhost local.localhost b\u00fccher.example xn--bcher-kva.example api.b\u00fccher.example stra\u00dfe.example \u65e5\u672c.example'.split(
    ' ',
  );
const server = fc
  .tuple(
    fc.constantFrom('https', 'http'),
    fc.constantFrom(...ADDRESSES, ...DOMAINS),
    fc.constantFrom('', '', ':443', ':80', ':6443'),
  )
  .map(([scheme, host, port]) => `${scheme}://${host}${port}/`);

const bare = ADDRESSES.map((address) => address.replaceAll(/[[\]]/gu, ''));
const name = fc.oneof(
  fc.constantFrom(...bare, ...ADDRESSES, ...DOMAINS),
  fc
    .tuple(fc.constantFrom('.', '*.', '*', '..', 'b.'), fc.constantFrom(...DOMAINS))
    .map((parts) => parts.join('')),
  fc.constantFrom(
    'fe80::1%eth0',
    '010.0.0.1',
    '10.0.1',
    '10',
    'com',
    '.',
    '*.',
    '[',
    ']',
    '[]',
    '::',
    '[fd00::1',
    'fd00::1]',
    'EXAMPLE.com',
    'B\u00dcCHER.example',
    '10.0.0.1.',
  ),
);
const network = fc
  .tuple(
    fc.constantFrom(
      ...bare,
      '10.0.0.0',
      '0.0.0.0',
      '::ffff:10.0.0.0',
      'fd00::',
      '[fd00::]',
      '10.0.0',
      '010.0.0.0',
      'fd00::%1',
      'example.com',
    ),
    fc.constantFrom(
      '0',
      '8',
      '08',
      '12',
      '24',
      '31',
      '32',
      '33',
      '64',
      '90',
      '95',
      '96',
      '100',
      '104',
      '127',
      '128',
      '129',
      '999',
      '',
      '-1',
      '+8',
      '8/8',
      ' 8',
      'x',
    ),
  )
  .map(([address, bits]) => `${address}/${bits}`);
const entry = fc
  .tuple(
    fc.oneof({ weight: 3, arbitrary: name }, { weight: 2, arbitrary: network }),
    fc.constantFrom('', '', '', ':443', ':80', ':6443', ':', ':x', '::', ':80:80'),
  )
  .map((parts) => parts.join(''));
const list = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.array(entry, { minLength: 1, maxLength: 3 }).map((entries) => entries.join(',')),
  },
  fc
    .array(fc.oneof(entry, fc.constantFrom('', ' ', '*', ':', ':80', '/', '/8')), { maxLength: 3 })
    .map((entries) => entries.join(' , ')),
);

describe('NO_PROXY', () => {
  test.each<[string, string, boolean]>([
    ['https://10.0.0.1', '::ffff:10.0.0.1', true],
    ['https://[::ffff:10.0.0.1]', '10.0.0.1', true],
    ['https://[::ffff:10.0.0.1]', '10.0.0.0/8', true],
    ['https://10.0.0.1', '::ffff:10.0.0.0/104', true],
    ['https://10.0.0.1', '::/0', false],
    ['https://[fd00::1]', '[fd00::1]', false],
    ['https://[fd00::1]', '[fd00::1]:443', true],
    ['https://[fd00::1]', 'fd00:0::1', true],
    ['https://b\u00fccher.example', 'xn--bcher-kva.example', true],
    ['https://xn--bcher-kva.example', 'B\u00dcCHER.example', true],
    ['https://10.0.0.1', '10.0.0.0/33', false],
    ['https://10.0.0.1', '0.1', false],
    ['https://example.com', 'example.com:', true],
    ['https://[::ffff:127.0.0.1]', '', true],
  ])('for %s with %s: direct is %s', (address, noProxy, isDirect) => {
    expect(proxyOf({ server: address, noProxy })).toBe(isDirect ? '' : PROXY);
  });

  test.skipIf(!hasGo)('means what it means to Go', () => {
    const cases = fc.sample(fc.record({ server, noProxy: list }), { numRuns: RUNS, seed: SEED });
    const go = proxiesInGo(cases);
    const wrong = cases.flatMap((one, index) =>
      proxyOf(one) === go[index] ? [] : [{ ...one, go: go[index] }],
    );
    expect(wrong.slice(0, 5), `${wrong.length} of ${RUNS}`).toEqual([]);
    expect(go.filter((proxy) => proxy === '').length).toBeGreaterThan(RUNS / 10);
  });
});
