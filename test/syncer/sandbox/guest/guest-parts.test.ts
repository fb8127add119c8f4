/** Functions of the guest that replace those of the daemon or the platform, compared with the original. */

import { hash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { NamespaceMode } from '../../../../src/config/types.ts';
import { readGuestSource } from '../../../../src/syncer/sandbox/guest-source.ts';
import {
  createBase64,
  createSha256,
  createVirtualToHostDNS,
} from '../../../../src/syncer/sandbox/guest/globals.ts';
import { virtualToHostDNS } from '../../translate/dns.ts';
import { createNameTranslator } from '../../../../src/syncer/translate/name-translator.ts';
import { LIMITS } from '../test-sandbox.ts';

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
    const outcome = (run: () => string): string => {
      try {
        return run();
      } catch {
        return 'refused';
      }
    };
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

  test.each(modes)('is that of the daemon in mode $kind', (mode) => {
    const vcluster = { name: 'vc', namespace: 'host-ns', config: {} };
    const { setup } = readGuestSource(vcluster, mode, LIMITS);
    const inside = createVirtualToHostDNS(setup.settings.names);
    const names = createNameTranslator({
      vcluster: 'vc',
      hostNamespace: 'host-ns',
      mode,
      referenceNaming: 'short',
    });
    const label = fc.oneof(
      fc.constantFrom('solo', 'team-a', 'team-a-b', 'vc-x', 'default', 'kubernetes', 'a'.repeat(63), '-', ''),
      fc.string({ unit: fc.constantFrom('a', 'b', '-', '0', 'x'), maxLength: 63 }),
    );
    const domain = fc.constantFrom('', '.cluster.local', '.cluster.local.', '..', '.a b', ':80');
    fc.assert(
      fc.property(
        label,
        label,
        fc.constantFrom('svc', 'pod', 'SVC'),
        domain,
        (name, namespace, kind, rest) => {
          const dnsName = `${name}.${namespace}.${kind}${rest}`;
          expect(inside(dnsName)).toBe(virtualToHostDNS(dnsName, names));
        },
      ),
      { numRuns: 300 },
    );
    expect(inside('kubernetes.default.svc')).toBe('vc.host-ns.svc');
  });
});
