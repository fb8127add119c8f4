/** What the first request of a kubeconfig would be sent with: by this program, and by client-go. */

import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { messageOf } from '../../../src/base/errors.ts';
import { loadClusterAccess } from '../../../src/kube/credentials/kubeconfig.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { goProgram } from '../../support/go-program.ts';

export interface Source {
  /** Path of a kubeconfig. */
  readonly kubeconfig?: string;
  /** Of KUBECONFIG, without a path. */
  readonly environment?: string;
  readonly context?: string;
}

export interface Connection {
  readonly server: string;
  /** `default` if none is set. */
  readonly namespace: string;
  readonly authorization: string;
  /** By header, in lower case. */
  readonly impersonation: Readonly<Record<string, readonly string[]>>;
  /** PEM; '' without. */
  readonly certificate: string;
  /** Base64 of PEM. */
  readonly authority: string;
  readonly serverName: string;
  readonly insecure: boolean;
  readonly proxy: string;
}

export type Result = Connection | { readonly error: string };

const runGo = goProgram<Result>(join(import.meta.dirname, 'go-client'));

/** The proxy that the environments have in these tests. */
export const PROXY = 'http://proxy.example:3128';

/** What Go reaches each server through: {@link PROXY}, or '' for nothing. */
export function proxiesInGo(
  cases: readonly { readonly server: string; readonly noProxy: string }[],
): string[] {
  return runGo(cases).map((found) => ('error' in found ? found.error : found.proxy));
}

export function inClientGo(sources: readonly Source[]): Result[] {
  return runGo(sources).map((found) =>
    'error' in found
      ? { error: found.error }
      : {
          ...found,
          server: withoutSlash(new URL(found.server).href),
          certificate: normalPem(found.certificate),
        },
  );
}

export async function inThisProgram(
  { kubeconfig = '', environment = '', context = '' }: Source,
  warn: (message: string) => void = () => undefined,
): Promise<Result> {
  try {
    const access = loadClusterAccess(
      { kubeconfig, context },
      { clock: new FakeClock(), env: { KUBECONFIG: environment, HOME: '/nowhere' }, warn },
    );
    const { authorization = '', ...headers } = await access.credentials.headers();
    const pair = await access.credentials.certificate();
    // Without TLS, none of it is used.
    const {
      ca = '',
      serverName = '',
      isUnverified,
    } = access.server.startsWith('https:') ? await access.trust() : { isUnverified: false };
    return {
      server: withoutSlash(new URL(access.server).href),
      namespace: access.namespace || 'default',
      authorization: received(authorization),
      impersonation: impersonationIn(headers),
      certificate: normalPem(String(pair?.cert ?? '')),
      authority: Buffer.from(ca).toString('base64'),
      serverName,
      insecure: isUnverified,
      proxy: access.proxyUrl ?? '',
    };
  } catch (error) {
    return { error: messageOf(error) };
  }
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/u, '');
}

/** Header values are sent as bytes, and read as UTF-8. */
function received(value: string): string {
  return Buffer.from(value, 'latin1').toString('utf8');
}

function impersonationIn(
  headers: Readonly<Record<string, string | readonly string[]>>,
): Record<string, string[]> {
  const found: Record<string, string[]> = {};
  for (const [name, value] of Object.entries(headers))
    for (const one of [value].flat()) (found[name.toLowerCase()] ??= []).push(received(one));
  return found;
}

function normalPem(text: string): string {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/gu) ?? [];
  return blocks.map((block) => new X509Certificate(block).toString()).join('');
}
