/** Kubeconfigs in files of a temporary folder, which the test that loads them removes. */

import { chmodSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ServerAccess } from '../../../src/kube/access.ts';
import { loadClusterAccess, type AccessSource } from '../../../src/kube/credentials/kubeconfig.ts';
import { TerminalError } from '../../../src/base/errors.ts';
import { FakeClock } from '../../support/fake-clock.ts';

export const ROOT = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
export const CERTIFICATES = join(import.meta.dirname, '../certificates');

export function put(path: string, text: string, mode = 0o600): string {
  const file = join(ROOT, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  chmodSync(file, mode);
  return file;
}

export function certificate(name: string): string {
  return readFileSync(join(CERTIFICATES, name), 'utf8');
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

export interface Parts {
  readonly cluster?: string;
  readonly user?: string;
  readonly context?: string;
  readonly tail?: string;
}

export function kubeconfig({
  cluster = 'server: "https://127.0.0.1:6443/"',
  user = 'token: abc',
  context = 'cluster: c, user: u',
  tail,
}: Parts = {}): string {
  return `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {${cluster}}}]
users: [{name: u, user: {${user}}}]
contexts: [{name: x, context: {${context}}}, {name: other, context: {cluster: c, user: u, namespace: elsewhere}}]
${tail ?? 'current-context: x'}
`;
}

let written = 0;

export function load(
  parts: Parts | string,
  source: Partial<AccessSource> = {},
  clock = new FakeClock(),
  env: Readonly<Record<string, string>> = {},
): ServerAccess {
  written += 1;
  const file = put(`configs/${written}/config`, typeof parts === 'string' ? parts : kubeconfig(parts));
  return loadClusterAccess({ kubeconfig: file, context: '', ...source }, { clock, env });
}

export function problem(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof TerminalError) return error.message;
    throw error;
  }
  throw new Error('it was accepted');
}
