/** Keeps pages of other sites, which a browser on this machine shows, from using a cluster that asks for no credentials. */

import type { IncomingMessage } from 'node:http';
import type { RequestListener } from '../apiserver/http/http-server.ts';
import { sendStatus } from './faults.ts';

/** A listener that denies what no client but a browser sends. */
export function withoutBrowsers(serve: RequestListener): RequestListener {
  return (request, response) => {
    const denial = denialOf(request);
    if (denial === undefined) serve(request, response);
    else sendStatus(response, denial);
  };
}

/** With any port, which a proxy on this machine may change. */
const LOOPBACK = /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/u;

interface Denial {
  readonly status: number;
  readonly reason: string;
  readonly message: string;
}

function denialOf({ method = '', headers }: IncomingMessage): Denial | undefined {
  const { host, origin } = headers;
  // DNS rebinding: a site whose name resolves to 127.0.0.1 sends its own name here.
  if (host !== undefined && !LOOPBACK.test(host))
    return forbidden(`unexpected Host header ${JSON.stringify(host)}; use the address of the kubeconfig`);
  if (origin !== undefined)
    return forbidden('requests with an Origin header are denied: a browser sent this one');
  // A browser sends a POST of another site without asking, but not with a type of JSON or YAML.
  const hasBody = ['POST', 'PUT', 'PATCH'].includes(method);
  if (!hasBody || headers['content-type'] !== undefined) return undefined;
  return {
    status: 415,
    reason: 'UnsupportedMediaType',
    message: 'the request has no Content-Type; set application/json',
  };
}

function forbidden(message: string): Denial {
  return { status: 403, reason: 'Forbidden', message };
}
