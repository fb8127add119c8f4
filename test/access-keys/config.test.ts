/** The section `managementApi`: its parsed values, and its validation errors. */

import { describe, expect, test } from 'vitest';
import { diffConfig } from '../../src/syncer/config/config.ts';
import { parseText, problemsIn, validConfig, withSyncer } from '../cli/config/setup.ts';

function problemsOf(section: string): string[] {
  return problemsIn(`${withSyncer('')}managementApi: ${section}`).map((line) => line.replace(/^\S+ /u, ''));
}

describe('the section', () => {
  test('is read from the file and from flags', () => {
    const flags = {
      bindAddress: '[::1]:9443',
      'store.driver': 'kubernetes',
      'tokenTtl.max': '30m',
      'tokenTtl.default': '10m',
      'host.namespace': 'ns',
      delegatedAuth: 'true',
    };
    const text = `${withSyncer('')}managementApi: {enabled: true, maxTtl: 720h, bindAddress: "127.0.0.1:1"}`;
    expect(parseText(text, { flags }).management).toMatchObject({
      enabled: true,
      bindAddress: '[::1]:9443',
      issuer: 'https://[::1]:9443',
      maxTtl: 2_592_000_000,
      tokenTtl: { default: 600_000, max: 1_800_000 },
      delegatedAuth: true,
      store: { driver: 'kubernetes' },
      host: { namespace: 'ns' },
    });
  });

  test('a change of it needs a restart', () => {
    const [a, b] = ['{maxTtl: 1h}', '{maxTtl: 2h, store: {driver: memory}}'].map((section) =>
      validConfig(`${withSyncer('')}managementApi: ${section}`),
    );
    expect(a && b && diffConfig(a, b)).toEqual({
      live: [],
      restart: ['managementApi.store.driver', 'managementApi.maxTtl'],
    });
  });
});

describe('rules', () => {
  const ISSUER = 'managementApi.issuer must be an https:// URL without user, query and fragment';
  test.each([
    ['{tls: {keyFile: k}}', 'managementApi.tls.certFile is required with keyFile'],
    ['{issuer: "http://x"}', ISSUER],
    ['{issuer: "https://"}', ISSUER],
    ['{issuer: "https://x?a=b"}', ISSUER],
    ['{tokenTtl: {max: 1h}}', 'managementApi.tokenTtl.max default (24h) must not be longer than max (1h)'],
    [
      '{enabled: true, bindAddress: "127.0.0.1:8080"}',
      'managementApi.bindAddress is also endpointSyncer.http.bindAddress: choose another port',
    ],
    [
      '{maxTtl: 1h, tokenTtl: {max: 48h}}',
      'managementApi.tokenTtl.max (warning) max (48h) is longer than managementApi.maxTtl (1h): a token expires with its key at the latest',
    ],
  ])('%s', (section, problem) => {
    expect(problemsOf(section)).toEqual([problem]);
  });

  test.each([
    '{enabled: true}',
    '{maxTtl: 1h}',
    '{bindAddress: "0.0.0.0:8443", issuer: "https://keys.example.com"}',
    '{enabled: true, bindAddress: "127.0.0.1:0"}',
    '{bindAddress: "127.0.0.1:8080"}',
    '{enabled: true, store: {driver: kubernetes, namespace: keys}}',
    '{store: {driver: kubernetes}}',
  ])('%s is fine', (section) => {
    expect(problemsOf(section)).toEqual([]);
  });
});
