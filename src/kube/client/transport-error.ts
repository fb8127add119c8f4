/** Explains why there was no response, with the next step where it is known. */

import { messageOf } from '../../base/errors.ts';
import { TransportError } from '../types.ts';

const UNKNOWN_AUTHORITY =
  "the server's certificate is not signed by the authority in the kubeconfig (certificate-authority)";

const HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused: is the API server running, is the port right?',
  ECONNRESET: 'the connection was reset',
  EPIPE: 'the connection was closed',
  ENOTFOUND: 'the host name does not resolve',
  EAI_AGAIN: 'the host name does not resolve at the moment',
  EHOSTUNREACH: 'there is no route to the host',
  ENETUNREACH: 'there is no route to the network',
  ETIMEDOUT: 'the connection timed out',
  UND_ERR_CONNECT_TIMEOUT: 'the connection could not be opened in time',
  UND_ERR_SOCKET: 'the server closed the connection',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  CERT_HAS_EXPIRED: "the server's certificate has expired",
  ERR_TLS_CERT_ALTNAME_INVALID:
    "the server's certificate is for another name: set tls-server-name or use a name that it holds",
  EPROTO: 'the TLS handshake failed: is this an https port, does the server want a client certificate?',
};

/** Wraps an error of the network or of the pool. `what` is the request: `GET host/path`. */
export function transportError(error: unknown, what: string): TransportError {
  if (error instanceof TransportError) return error;
  const code = errorCode(error);
  const reason = messageOf(error);
  const hint = code === undefined ? undefined : HINTS[code];
  const detail = hint === undefined ? reason : `${hint} (${code})`;
  return new TransportError(`no response to ${what}: ${detail}`, { cause: error });
}

function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ('code' in error && typeof error.code === 'string') return error.code;
  // Several addresses were tried: the first failure stands for all.
  if (error instanceof AggregateError) return errorCode(error.errors[0]);
  return error.cause === undefined ? undefined : errorCode(error.cause);
}
