/**
 * A client of an API server that a Secret names. A client that can write the Secret chooses the server, which may be any that this program reaches, so
 * texts of its responses must not reach Events, Leases and states. Errors keep what the program decides by.
 */

import { isAnonymous, NO_STATUS, StatusError, type Status, type StatusDetails } from './status-error.ts';
import { MalformedResponseError, MalformedStreamError, type WatchClient } from './types.ts';

/** `access`: what has the credentials, for messages. */
export function discreetClient(client: WatchClient, access: string): WatchClient {
  const discreet = async <T>(what: string, request: Promise<T>): Promise<T> => {
    try {
      return await request;
    } catch (error) {
      throw withoutTexts(what, error, access);
    }
  };
  return {
    cluster: client.cluster,
    get: (resource, key, options) =>
      discreet(`GET of ${resource.plural}`, client.get(resource, key, options)),
    list: (resource, options) => discreet(`list of ${resource.plural}`, client.list(resource, options)),
    watch: (resource, options, handler) =>
      discreet(`watch of ${resource.plural}`, client.watch(resource, options, handler)),
    create: (resource, object, options) =>
      discreet(`creation of ${resource.plural}`, client.create(resource, object, options)),
    update: (resource, object, options) =>
      discreet(`update of ${resource.plural}`, client.update(resource, object, options)),
    patch: (resource, key, patch, options) =>
      discreet(`patch of ${resource.plural}`, client.patch(resource, key, patch, options)),
    delete: (resource, key, preconditions, options) =>
      discreet(`deletion of ${resource.plural}`, client.delete(resource, key, preconditions, options)),
    request: (method, path, body, options) =>
      discreet(`${method} ${path}`, client.request(method, path, body, options)),
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  };
}

function withoutTexts(what: string, error: unknown, access: string): unknown {
  const malformed = `the response to the ${what} is malformed`;
  if (error instanceof StatusError) return codeAlone(what, error, access);
  if (error instanceof MalformedResponseError) return new MalformedResponseError(malformed);
  if (error instanceof MalformedStreamError) return new MalformedStreamError(malformed);
  return error;
}

/** Those of `metav1.StatusReason` that an API server returns, and that of a page. */
const REASONS: ReadonlySet<string> = new Set(
  `${NO_STATUS} Unauthorized Forbidden NotFound AlreadyExists Conflict Gone Invalid ServerTimeout Timeout TooManyRequests BadRequest MethodNotAllowed NotAcceptable RequestEntityTooLarge UnsupportedMediaType InternalError Expired ServiceUnavailable StorageReadError`.split(
    ' ',
  ),
);

function codeAlone(what: string, error: StatusError, access: string): StatusError {
  const { code, retryAfterMs } = error;
  const reason = REASONS.has(error.reason) ? error.reason : 'Unknown';
  const own = code === 401 ? [`the credentials of ${access} are not accepted`] : [];
  const more = [...own, ...knownTexts(error)].map((text) => `: ${text}`);
  const message = `the response to the ${what} is ${code} ${reason}${more.join('')}`;
  const status: Status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    code,
  };
  return new StatusError({ ...status, details: knownDetails(error.status.details) }, { retryAfterMs });
}

/** Texts that the program looks for. */
function knownTexts(error: StatusError): string[] {
  const texts = ['field is immutable'].filter((text) => error.message.includes(text));
  return isAnonymous(error) ? [...texts, 'the user is "system:anonymous"'] : texts;
}

/** Details that the program looks at. */
function knownDetails({ kind, causes = [] }: StatusDetails = {}): StatusDetails {
  return {
    ...(kind === 'namespaces' && { kind }),
    causes: causes.flatMap(({ reason, field }) => [
      ...(reason === 'NamespaceTerminating' ? [{ reason }] : []),
      ...(field === 'metadata.uid' ? [{ field }] : []),
    ]),
  };
}
