/** Allows requests of a browser on this machine that shows this page, and denies those of other sites. */

import type { IncomingMessage } from 'node:http';

/** Why a request is denied; undefined: it is allowed. `port` is the one that the server listens on. */
export function denialOf({ method, headers }: IncomingMessage, port: number): string | undefined {
  const own = ['127.0.0.1', 'localhost', '[::1]'].map((name) => `${name}:${port}`);
  // DNS rebinding: a site whose name resolves to 127.0.0.1 sends its own name here.
  if (!own.includes(headers.host ?? '')) return `unexpected Host header; open http://127.0.0.1:${port}`;
  const { origin } = headers;
  const isReading = method === 'GET' || method === 'HEAD';
  if (origin === undefined) return isReading ? undefined : 'a request that writes needs an Origin header';
  return own.some((host) => origin === `http://${host}`)
    ? undefined
    : 'requests of another origin are denied';
}
