/** Credentials of exec plugins: when they are run, what they may return, and how they fail. */

import { rmSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import { FakeClock } from '../../support/fake-clock.ts';
import { ROOT, put, load, type Parts } from './kubeconfig-files.ts';

afterAll(() => rmSync(ROOT, { recursive: true, force: true }));

describe('an exec plugin', () => {
  function plugin(name: string, script: string): string {
    return put(`plugins/${name}`, `#!${process.execPath}\n${script}`, 0o700);
  }

  function exec(command: string, extra = ''): Parts {
    return {
      user: `exec: {apiVersion: client.authentication.k8s.io/v1, command: "${command}", args: [x], env: [{name: A, value: b}]${extra}}`,
    };
  }

  const COUNTING = `
    const { readFileSync, writeFileSync } = require('node:fs');
    const file = __filename + '.count';
    let count = 0;
    try { count = Number(readFileSync(file, 'utf8')); } catch {}
    writeFileSync(file, String(count + 1));
    const info = JSON.parse(process.env.KUBERNETES_EXEC_INFO);
    const token = [info.apiVersion, info.spec.interactive, process.env.A, process.argv[2], count].join('|');
    console.log(JSON.stringify({ kind: 'ExecCredential', apiVersion: info.apiVersion, status: { token } }));`;

  test('runs once for all waiting requests, and again when its token is rejected', async () => {
    const clock = new FakeClock();
    const { credentials } = load(exec(plugin('counting.cjs', COUNTING)), {}, clock);
    const answers = await Promise.all([
      credentials.headers(),
      credentials.headers(),
      credentials.certificate(),
    ]);
    const first = { authorization: 'Bearer client.authentication.k8s.io/v1|false|b|x|0' };
    expect(answers).toEqual([first, first, undefined]);
    clock.advance(60_000);
    expect(await credentials.headers(), 'without an expiry it stays good').toEqual(first);
    expect(credentials.invalidate()).toBe(true);
    expect(await credentials.headers()).toEqual({
      authorization: 'Bearer client.authentication.k8s.io/v1|false|b|x|1',
    });
    expect(credentials.invalidate(), 'not twice in a row').toBe(false);
    clock.advance(10_000);
    expect(credentials.invalidate()).toBe(true);
  });

  test('may return a certificate', async () => {
    const script = `console.log(JSON.stringify({ status: { clientCertificateData: 'C', clientKeyData: 'K' } }))`;
    const { credentials } = load(exec(plugin('certificate.cjs', script)));
    expect(await credentials.certificate()).toEqual({ cert: 'C', key: 'K' });
    expect(await credentials.headers()).toEqual({});
  });

  test.each([
    [
      'is missing',
      '/nowhere/plugin',
      ', installHint: "install it"',
      /credential plugin of user u \(exec\) failed: .*ENOENT.*; install it/,
    ],
    [
      'fails',
      () => plugin('fails.cjs', `console.error('login first'); process.exit(3)`),
      '',
      /failed: login first/,
    ],
    ['says nonsense', () => plugin('nonsense.cjs', `console.log('hello')`), '', /failed: .*JSON/],
    [
      'prints nothing',
      () => plugin('nothing.cjs', `console.log('{"status":{}}')`),
      '',
      /returned neither a token nor a certificate/,
    ],
    [
      'prints no status',
      () => plugin('status.cjs', `console.log('{}')`),
      '',
      /credential plugin of user u \(exec\) failed/,
    ],
  ])('that %s fails with the reason', async (_, command, extra, message) => {
    const { credentials } = load(exec(typeof command === 'string' ? command : command(), extra));
    await expect(credentials.headers()).rejects.toThrow(message);
    await expect(credentials.headers(), 'and the next try is a new one').rejects.toThrow(message);
  });

  test('an auth provider that is no longer supported', async () => {
    const { credentials } = load({ user: 'auth-provider: {name: magic}' });
    await expect(credentials.headers()).rejects.toThrow(
      /there is no auth provider "magic"; use an exec plugin/,
    );
  });
});
