/** `docs/keys-and-tokens.md`: every command on the page is run, and prints what the page says. */

import { dirname } from 'node:path';
import { expect, inject, test } from 'vitest';
import { freePorts } from '../scenarios/free-ports.ts';
import { playPage } from './doc-session.ts';

/** What is another at every run. */
const CHANGING: readonly (readonly [RegExp, string])[] = [
  [/^certificate-authority: \S*\/keys-data\/ca\.crt$/gmu, 'certificate-authority: …'],
  [/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/gu, '<uid>'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/gu, '<time>'],
  [/ \d+s$/gmu, ' <age>'],
];

function settled(text: string): string {
  return CHANGING.reduce((result, [pattern, name]) => result.replaceAll(pattern, name), text).trimEnd();
}

test('from zero to a key in CI', { timeout: 120_000 }, async () => {
  const [port] = await freePorts(1);
  const { kubectl } = inject('clusters');
  const path = `${dirname(kubectl)}:${dirname(process.execPath)}:${process.env['PATH']}`;
  const { ENDPOINT_SYNCER_TOKEN: _token, KUBECONFIG: _kubeconfig, ...env } = process.env;
  const replace = { '127.0.0.1:8443': `127.0.0.1:${port}` };
  const played = await playPage({ page: 'keys-and-tokens.md', env: { ...env, PATH: path }, replace });
  expect(played.length).toBeGreaterThan(15);
  for (const { command, documented, printed } of played) {
    expect([command, settled(printed)]).toEqual([command, settled(documented)]);
  }
});
