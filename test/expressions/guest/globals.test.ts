/** Functions of the guest that replace those of the daemon or the platform, compared with the original. */

import { hash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { NamespaceMode } from '../../../src/syncer/translate/types.ts';
import { isolateMessage } from '../../../src/expressions/guest-source.ts';
import {
  createBase64,
  createSha256,
  createVirtualToHostDNS,
} from '../../../src/expressions/guest/globals.ts';
import type { NameTranslator } from '../../../src/syncer/translate/types.ts';
import { translateDnsName } from '../../syncer/translate/dns.ts';
import { namingRules } from '../../../src/syncer/translate/naming-rules.ts';
import { translators } from '../../syncer/translate/setup.ts';
import { anyText } from '../../support/any-text.ts';
import { LIMITS } from '../test-sandbox.ts';

function outcome(run: () => string): string {
  try {
    return run();
  } catch {
    return 'refused';
  }
}

describe('sha256', () => {
  test('equals that of Node.js', () => {
    const sha256 = createSha256();
    const ascii = fc.string({ unit: 'grapheme-ascii', maxLength: 300 });
    fc.assert(fc.property(ascii, (text) => sha256(text) === hash('sha256', text, 'hex')));
    for (const length of [0, 55, 56, 63, 64, 65, 119, 120]) {
      expect(sha256('x'.repeat(length))).toBe(hash('sha256', 'x'.repeat(length), 'hex'));
    }
  });
});

describe('base64', () => {
  const base64 = createBase64();
  const bytes = fc.uint8Array({ maxLength: 60 }).map((each) => String.fromCharCode(...each));

  test('equals that of Node.js', () => {
    fc.assert(fc.property(bytes, (text) => base64.btoa(text) === btoa(text)));
    fc.assert(fc.property(bytes, (text) => base64.atob(btoa(text)) === text));
    expect(base64.atob(' YQ = = ')).toBe('a');
    expect(base64.atob('YQ')).toBe('a');
  });

  test('rejects the same texts as Node.js', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('A', 'b', '=', '-', ' ', 'é', '4'), maxLength: 8 }),
        (text) => {
          expect(outcome(() => base64.atob(text))).toBe(outcome(() => atob(text)));
          expect(outcome(() => base64.btoa(text))).toBe(outcome(() => btoa(text)));
        },
      ),
    );
    expect(outcome(() => base64.btoa('\u0100'))).toBe('refused');
  });
});

describe('base64 of UTF-8', () => {
  const { base64 } = createBase64();

  test('equals that of Node.js', () => {
    const text = fc.oneof(anyText(40), fc.string({ unit: 'grapheme' }));
    fc.assert(
      fc.property(text, (each) => {
        const encoded = base64.encode(each);
        expect([encoded, base64.decode(encoded)]).toEqual([Buffer.from(each).toString('base64'), each]);
      }),
    );
    expect(base64.encode('Grüße, 世界 🌍')).toBe('R3LDvMOfZSwg5LiW55WMIPCfjI0=');
    expect(base64.decode(' R3LDvMOf\nZQ ')).toBe('Grüße');
    expect([base64.encode(''), base64.decode('')]).toEqual(['', '']);
    expect(base64.decode(base64.encode('\ufeffa'))).toBe('\ufeffa');
  });

  test('rejects the same bytes as Node.js', () => {
    const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    const byte = fc.oneof(
      fc.constantFrom(0x61, 0x80, 0xbf, 0xc0, 0xc3, 0xe2, 0xed, 0xf0, 0xf4, 0xff),
      fc.nat(255),
    );
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 6 }), (bytes) => {
        const input = Buffer.from(bytes);
        expect(outcome(() => base64.decode(input.toString('base64')))).toBe(
          outcome(() => strict.decode(input)),
        );
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    [
      'encode',
      '\ud800',
      'RangeError: base64.encode was given half of a surrogate pair, which UTF-8 does not have',
    ],
    ['encode', undefined, 'TypeError: base64.encode takes text, not undefined'],
    ['encode', 1, 'TypeError: base64.encode takes text, not number'],
    ['decode', null, 'TypeError: base64.decode takes text, not null'],
    ['decode', 'a', 'RangeError: base64.decode was given text that is not base64'],
    ['decode', 'YQ-_', 'RangeError: base64.decode was given text that is not base64'],
    [
      'decode',
      '/w==',
      'RangeError: base64.decode was given bytes that are not UTF-8; atob returns them as characters',
    ],
    [
      'decode',
      '7aCA',
      'RangeError: base64.decode was given bytes that are not UTF-8; atob returns them as characters',
    ],
  ] as const)('%s of %j is an error', (method, value, message) => {
    const thrown = (): unknown => {
      try {
        return base64[method](value);
      } catch (error) {
        return String(error);
      }
    };
    expect(thrown()).toBe(message);
  });
});

describe('virtualToHostDNS', () => {
  const byName = {
    'team-*': 'h-team-*',
    solo: 'h-solo',
    '${name}-x': 'h-${name}-x',
    'team-a-*': 'h-a-*',
    '*': 'h-rest-*',
  };
  const modes: NamespaceMode[] = [
    { kind: 'single' },
    { kind: 'legacy-multi' },
    { kind: 'mappings', mappingsOnly: false, byName },
    { kind: 'mappings', mappingsOnly: true, byName: { solo: 'h-solo' } },
    { kind: 'mappings', mappingsOnly: false, byName: { solo: 'h-solo' } },
  ];

  /** The function of the sandbox, and the independent one of the tests. */
  function functionsFor(mode: NamespaceMode): [inside: (text: unknown) => string, names: NameTranslator] {
    const vcluster = { name: 'vc', namespace: 'host-ns', config: {} };
    const { settings } = isolateMessage(1, { vcluster, names: namingRules(vcluster, mode), limits: LIMITS });
    const { names } = translators(mode, { vcluster: 'vc', hostNamespace: 'host-ns' });
    return [createVirtualToHostDNS(settings.names), names];
  }

  const LONG_DOMAIN = `${'d'.repeat(63)}.`.repeat(3);

  test.each([
    ['nginx.default', 'nginx-x-default-x-vc.host-ns'],
    ['nginx.default.svc', 'nginx-x-default-x-vc.host-ns.svc'],
    ['nginx.default.svc.', 'nginx-x-default-x-vc.host-ns.svc.'],
    ['nginx.default.svc.cluster.local', 'nginx-x-default-x-vc.host-ns.svc.cluster.local'],
    ['nginx.default.svc.cluster.local.', 'nginx-x-default-x-vc.host-ns.svc.cluster.local.'],
    ['db-0.db.shop.svc', 'db-0.db-x-shop-x-vc.host-ns.svc'],
    ['10-0-0-7.db.shop.svc.cluster.local', '10-0-0-7.db-x-shop-x-vc.host-ns.svc.cluster.local'],
    ['db.svc', 'db-x-svc-x-vc.host-ns'],
    ['db.svc.svc', 'db-x-svc-x-vc.host-ns.svc'],
    ['db-0.db.svc.svc', 'db-0.db-x-svc-x-vc.host-ns.svc'],
    ['kubernetes.default', 'vc.host-ns'],
    ['kubernetes.default.svc.cluster.local', 'vc.host-ns.svc.cluster.local'],
    ['kubernetes.other.svc', 'kubernetes-x-other-x-vc.host-ns.svc'],
    ['nginx.default:8080', 'nginx-x-default-x-vc.host-ns:8080'],
    ['nginx.default.svc.:8080', 'nginx-x-default-x-vc.host-ns.svc.:8080'],
    ['nginx.default.svc/app:1', 'nginx-x-default-x-vc.host-ns.svc/app:1'],
    ['http://nginx.default', 'http://nginx-x-default-x-vc.host-ns'],
    ['https://kubernetes.default.svc:443/api?watch=1#top', 'https://vc.host-ns.svc:443/api?watch=1#top'],
    [
      'redis://user:a@b:c@db-0.db.shop.svc:6379/0',
      'redis://user:a@b:c@db-0.db-x-shop-x-vc.host-ns.svc:6379/0',
    ],
    ['http://db.shop.svc?next=http://a@b/', 'http://db-x-shop-x-vc.host-ns.svc?next=http://a@b/'],
    ['JDBC+x://db.shop.svc/\n two', 'JDBC+x://db-x-shop-x-vc.host-ns.svc/\n two'],
    [`${'n'.repeat(63)}.shop`, `${'n'.repeat(52)}-892834e8ba.host-ns`],
  ])('%s → %s', (virtual, host) => {
    const [inside, names] = functionsFor({ kind: 'single' });
    expect([inside(virtual), translateDnsName(virtual, names)]).toEqual([host, host]);
  });

  test.each([
    ['', /cannot translate "": a Service is name\.namespace/],
    ['nginx', /"nginx": a Service is/],
    ['N.d.svc', /in lower case/],
    ['nginx.default.pod', /a Service is/],
    ['nginx.default.svcx', /a Service is/],
    ['www.example.com', /a Service is/],
    ['a.b.c.d.svc', /a Service is/],
    ['10.0.0.1', /a Service is/],
    ['[fd00::1]:80', /a Service is/],
    ['.default.svc', /a Service is/],
    ['n..svc', /a Service is/],
    ['n.d.svc..', /a Service is/],
    ['n.d.svc..x', /a Service is/],
    ['n.d.svc.a b', /a Service is/],
    [' n.d.svc', /a Service is/],
    ['n.d.svc,m.d.svc', /a Service is/],
    ['user@n.d.svc', /a Service is/],
    ['//n.d.svc', /a Service is/],
    ['http://n.d.svc\\@example.com', /cannot translate "example\.com"/],
    ['n.d.svc:', /a port is a number from 1 to 65535/],
    ['n.d.svc:0', /a port/],
    ['n.d.svc:65536', /a port/],
    ['http://n.d.svc:http/', /a port/],
    [`${'n'.repeat(40)}.d.svc.${LONG_DOMAIN}x`, /longer than 253 characters/],
  ])('%j is an error', (text, message) => {
    const [inside, names] = functionsFor({ kind: 'single' });
    expect(() => inside(text)).toThrow(message);
    expect(translateDnsName(text, names)).toBeUndefined();
  });

  test.each([
    [undefined, 'undefined'],
    [null, 'null'],
    [80, 'number'],
    [['n.d.svc'], 'object'],
  ])('%j is no text', (value, type) => {
    const [inside] = functionsFor({ kind: 'single' });
    expect(() => inside(value)).toThrow(new TypeError(`virtualToHostDNS takes text, not ${type}`));
  });

  test('an error names no password', () => {
    const [inside] = functionsFor({ kind: 'single' });
    for (const text of ['http://me:secret@example/', 'http://me:sec?ret@x', 'http://example?token=secret']) {
      expect(() => inside(text)).toThrow(/^virtualToHostDNS cannot translate "((?!sec).)*$/);
    }
    expect(() => inside('x'.repeat(5000))).toThrow(new RegExp(`"${'x'.repeat(80)}…": a Service is`));
  });

  test('mapped namespaces keep the names of Services; others are an error if only mapped ones are synced', () => {
    const [inside] = functionsFor({ kind: 'mappings', mappingsOnly: true, byName: { a: 'h' } });
    expect(inside('n.a.svc')).toBe('n.h.svc');
    expect(inside('https://n-0.n.a.svc:443/')).toBe('https://n-0.n.h.svc:443/');
    expect(() => inside('n.b.svc')).toThrow(
      /"n.b.svc": sync.toHost.namespaces.mappings.byName does not map the namespace "b"/,
    );
    const [fallback] = functionsFor({ kind: 'mappings', mappingsOnly: false, byName: { a: 'h' } });
    expect(fallback('n.b.svc')).toBe('n-x-b-x-vc.host-ns.svc');
  });

  test.each(modes)('is that of the daemon in mode $kind', (mode) => {
    const [inside, names] = functionsFor(mode);
    const label = fc.oneof(
      fc.constantFrom(
        'solo',
        'team-a',
        'team-a-b',
        'vc-x',
        'default',
        'kubernetes',
        'svc',
        'a'.repeat(63),
        '-',
        '',
      ),
      fc.string({ unit: fc.constantFrom('a', 'b', '-', '0', 'x'), maxLength: 63 }),
    );
    const part = (...texts: string[]): fc.Arbitrary<string> =>
      fc.oneof(
        { weight: 2, arbitrary: fc.constant('') },
        { weight: 1, arbitrary: fc.constantFrom(...texts) },
      );
    const dnsName = fc
      .tuple(
        part('http://', 'tcp+tls://', 'HTTPS://', '1x://', ':', '//'),
        part('me@', 'me:pw@', 'a@b@', '@', 'a/b@', 'a b@'),
        fc.array(label, { maxLength: 1 }).map((labels) => labels.map((each) => `${each}.`).join('')),
        fc.tuple(label, label).map((labels) => labels.join('.')),
        part(
          '.svc',
          '.svc.cluster.local',
          '.svc.cluster.local.',
          '.',
          '.pod',
          '.SVC',
          '.svc..',
          `.svc.${LONG_DOMAIN}d`,
        ),
        part(':80', ':65535', ':65536', ':0', ':', ':http', ':1:2', '.a b'),
        part('/', '/a/b:c@d', '?a=b.c.svc', '#x', '\\', '/\n?#'),
      )
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(dnsName, (text) => {
        const translated = (): string | undefined => {
          try {
            return inside(text);
          } catch (error) {
            if (error instanceof RangeError) return undefined;
            throw error;
          }
        };
        expect(translated()).toBe(translateDnsName(text, names));
      }),
      { numRuns: 1000 },
    );
    expect(inside('kubernetes.default.svc')).toBe('vc.host-ns.svc');
  });
});
