/** The addresses of an FQDN slice that are DNS names of Services: those of their copies on the host, and of no Service of others, in every mode. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { asJson, type KubeObject, type NamespacedName } from '../../../src/kube/object.ts';
import type { JsonObject, JsonValue } from '../../../src/base/json.ts';
import { createEndpointSliceKind } from '../../../src/syncer/kinds/endpoint-slices.ts';
import { serviceNameToHost } from '../../../src/syncer/kinds/service-names.ts';
import type { NameTranslator } from '../../../src/syncer/translate/types.ts';
import { translateDnsName } from '../translate/dns.ts';
import { LEGACY, mappings, SINGLE, translators } from '../translate/setup.ts';

const kind = createEndpointSliceKind({
  isEndpointsSynced: true,
  addressesOf: () => [],
  neverCopied: () => undefined,
  localServiceOf: () => undefined,
});

function slice(addresses: readonly JsonValue[], addressType = 'FQDN'): KubeObject {
  const labels = { 'kubernetes.io/service-name': 'ext' };
  return {
    metadata: { name: 'ext-1', namespace: 'shop', labels },
    addressType,
    endpoints: addresses.map((address) => ({ addresses: [address] })),
  };
}

function addressesIn(content: JsonObject): JsonValue[] {
  const endpoints = content['endpoints'] as { addresses: JsonValue[] }[]; // of `slice`
  return endpoints.flatMap(({ addresses }) => addresses);
}

const toHost = (object: KubeObject, names: NameTranslator): JsonValue[] =>
  addressesIn(kind.content.toHost(object, { names, host: undefined }));

const back = (addresses: readonly JsonValue[], original: KubeObject, names: NameTranslator): JsonValue[] =>
  addressesIn(kind.content.toVirtual(slice(addresses), { names, namespace: 'shop', original }));

const MODES = [SINGLE, LEGACY, mappings({ 'team-*': 'h-*', shop: 'h-shop' })];
const label = fc.constantFrom('db', 'shop', 'team-a', 'default', 'kubernetes', 'svc', 'n'.repeat(63), '0');
const dnsName = fc
  .tuple(
    fc.array(label, { minLength: 1, maxLength: 4 }),
    fc.constantFrom('', '.svc', '.svc.cluster.local', '.svc.'),
  )
  .map(([labels, end]) => labels.join('.') + end);

describe('an FQDN address', () => {
  test('with .svc is the name of the copy, as an externalName and virtualToHostDNS have it', () => {
    fc.assert(
      fc.property(dnsName, fc.constantFrom(...MODES), (name, mode) => {
        const { names } = translators(mode);
        const isService = name.split('.').slice(2, 4).includes('svc');
        const translated = isService ? translateDnsName(name, names) : undefined;
        expect(toHost(slice([name]), names)).toEqual([translated ?? name]);
      }),
    );
  });

  test('comes back as what it was, and never as the name of a Service that the virtual cluster does not know', () => {
    fc.assert(
      fc.property(dnsName, dnsName, fc.constantFrom(...MODES), (name, edited, mode) => {
        const { names } = translators(mode);
        const original = slice([name]);
        expect(back(toHost(original, names), original, names)).toEqual([name]);
        for (const address of back([edited], original, names))
          expect([edited, name]).toContain(toHost(slice([address]), names)[0] === edited ? edited : address);
      }),
    );
  });

  test.each([
    [
      'of the copy of another Service is its virtual name',
      { namespace: 'shop', name: 'web' },
      ['web.shop.svc'],
    ],
    ['of a Service of the host has none', undefined, []],
  ] as [string, NamespacedName | undefined, string[]][])('%s', (_what, virtual, expected) => {
    const { names } = translators();
    const host = (virtual && names.toHost(virtual)) ?? { name: 'payments', namespace: 'prod' };
    expect(back([`${host.name}.${host.namespace}.svc`], slice(['db.shop.svc']), names)).toEqual(expected);
  });

  test('is not translated as an IP address, and what is no text stays', () => {
    const { names } = translators();
    const odd = slice([null, 7, 'db.shop.svc', { a: 1 }]);
    expect(toHost(slice(['db.shop.svc'], 'IPv4'), names)).toEqual(['db.shop.svc']);
    expect(toHost(odd, names)).toEqual([null, 7, serviceNameToHost('db.shop.svc', names), { a: 1 }]);
    const { endpoints: _none, ...without } = asJson(odd);
    expect(kind.content.toHost(without as KubeObject, { names, host: undefined })).toEqual({
      endpoints: null,
    });
  });

  test('in a namespace that is not mapped prevents the copy, and the path names it', () => {
    const { names } = translators(mappings({ shop: 'team-shop' }, true));
    const unmapped = (object: KubeObject): unknown => kind.unmappedNamespace?.(object, names);
    expect(unmapped(slice(['db.shop.svc', 'db.other.svc']))).toEqual({
      namespace: 'other',
      path: 'endpoints[1].addresses[0]',
    });
    expect(unmapped(slice(['db.shop.svc', 'db.example.com', 'db.other']))).toBeUndefined();
    expect(unmapped(slice(['db.other.svc'], 'IPv4'))).toBeUndefined();
  });
});
