/** What a request asks for: the paths and verbs of a kube-apiserver, the port that authorizes it, and its entry in the audit log. */

import { isTrue } from '../objects/query-options.ts';
import type { Verb, ResourceDefinition } from '../objects/resource-definition.ts';
import { microTime } from '../../kube/object.ts';
import type { JsonObject } from '../../base/json.ts';
import type { UserInfo } from '../user.ts';

export interface ResourcePath {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  /** `''`: cluster scope, or all namespaces. */
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
}

/** A URL path, split into the prefix of a cluster and the API path. */
export interface ServerPath {
  readonly prefix: string;
  readonly path: string;
}

/** The resource that a URL path names, with decoded segments; undefined for non-resource paths such as discovery and health. */
export function parseResourcePath(path: string): ResourcePath | undefined {
  const segments = decodeSegments(path);
  if (!segments) return undefined;
  const [root, ...rest] = segments;
  if (root === 'api' && rest.length >= 2) return resourceOf('', rest[0] ?? '', rest.slice(1));
  if (root === 'apis' && rest.length >= 3) return resourceOf(rest[0] ?? '', rest[1] ?? '', rest.slice(2));
  return undefined;
}

function decodeSegments(path: string): string[] | undefined {
  try {
    const segments = path.split('/').slice(1).map(decodeURIComponent);
    if (segments.at(-1) === '') segments.pop();
    return segments.includes('') ? undefined : segments;
  } catch {
    return undefined;
  }
}

function resourceOf(group: string, version: string, segments: readonly string[]): ResourcePath | undefined {
  const isBelowNamespace = segments[0] === 'namespaces' && segments.length > 2;
  // `/namespaces/x/status` is a subresource of the namespace, `/namespaces/x/pods` a collection in it.
  const isSubresource =
    isBelowNamespace && segments.length === 3 && ['status', 'finalize'].includes(segments[2] ?? '');
  const namespace = isBelowNamespace && !isSubresource ? (segments[1] ?? '') : '';
  const [resource = '', name = '', subresource = '', ...more] =
    namespace === '' ? segments : segments.slice(2);
  if (more.length > 0) return undefined;
  return { group, version, resource, namespace, name, subresource };
}

/** The verb of a request for authorization and audit; undefined for any other HTTP method. */
export function verbOf(method: string, path: ResourcePath, query: URLSearchParams): Verb | undefined {
  const isCollection = path.name === '';
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (!isCollection) return 'get';
      // A HEAD has no body that could be a stream.
      return method === 'GET' && isTrue(query.get('watch')) ? 'watch' : 'list';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return isCollection ? 'deletecollection' : 'delete';
    default:
      return undefined;
  }
}

export interface AccessRequest extends ResourcePath {
  /** For a path, the HTTP method in lower case. */
  readonly verb: string;
  /** Set instead of the resource for `/healthz` and the like. */
  readonly path: string;
  /** The part of the URL before the API path, such as `/kubernetes/cluster/a`; `''`: this server itself. */
  readonly prefix: string;
}

export interface AccessDecision {
  readonly isAllowed: boolean;
  /** No other authorizer may allow it either. Meaningless when `isAllowed`. */
  readonly isDenied?: boolean;
  readonly reason: string;
}

export interface Authorizer {
  authorize(user: UserInfo, request: AccessRequest): AccessDecision | Promise<AccessDecision>;
  /**
   * Which objects of the kind this user can see; undefined: all. For this user, other objects do not exist. The function receives the
   * object as a client sees it.
   */
  visibleTo?(user: UserInfo, definition: ResourceDefinition): ((object: JsonObject) => boolean) | undefined;
}

export const allowEverything: Authorizer = {
  authorize: () => ({ isAllowed: true, reason: '' }),
};

/** The message of a kube-apiserver for a denied request. */
export function denialText(user: UserInfo, request: AccessRequest, decision: AccessDecision): string {
  const { verb, group, resource, subresource, namespace, path, prefix } = request;
  const why = decision.reason === '' ? '' : `: ${decision.reason}`;
  const who = `User ${JSON.stringify(user.name)} cannot ${verb}`;
  if (resource === '') return `${who} path ${JSON.stringify(prefix + path)}${why}`;
  const what = subresource === '' ? resource : `${resource}/${subresource}`;
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`;
  return `${who} resource ${JSON.stringify(what)} in API group ${JSON.stringify(group)} ${where}${why}`;
}

// The entry of a request in the audit log: user, verb, object, time and outcome. Never a header or a body.

/** Facts about one request, collected while it is served. */
export interface RequestRecord {
  readonly id: string;
  readonly url: string;
  readonly address: string;
  readonly userAgent: string;
  /** Epoch milliseconds. */
  readonly receivedMs: number;
  /** The verb of authorization; for non-resource requests the method in lower case. */
  readonly verb: string;
  readonly path: ResourcePath | undefined;
  user: UserInfo | undefined;
  /** `''`: the request failed before authorization. */
  decision: 'allow' | 'forbid' | '';
  reason: string;
  /** The name of the object that was written: the URL of a create does not contain it. */
  writtenName: string;
}

export function recordDecision(record: RequestRecord, { isAllowed, reason }: AccessDecision): void {
  record.decision = isAllowed ? 'allow' : 'forbid';
  record.reason = reason;
}

/** `Event` of audit.k8s.io/v1 at the level `Metadata`. */
export type AuditEvent = Readonly<ReturnType<typeof auditEvent>>;

const USER_AGENT_CHARACTERS_MAX = 1024;
/** Of a URL, a part of it, and a reason: a client chooses their length, and a long line displaces others. */
const TEXT_CHARACTERS_MAX = 512;

/** JSON omits the fields that are undefined. Events have one shape, which engines copy and encode fastest. */
export function auditEvent(record: RequestRecord, code: number, nowMs: number) {
  const { id, url, verb, user, address, userAgent, path, decision, reason, receivedMs } = record;
  const requestURI = masked(url);
  const received = microTime(receivedMs);
  // Without escapes, the parts of a path are parts of this text: they contain no credential if it contains none.
  const isClean = requestURI === url && !url.includes('%');
  return {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: id,
    stage: 'ResponseComplete',
    requestURI: cut(requestURI),
    verb,
    user: user ? auditUser(user) : NO_USER,
    sourceIPs: [address],
    userAgent: userAgent === '' ? undefined : masked(userAgent).slice(0, USER_AGENT_CHARACTERS_MAX),
    objectRef: path && auditObject(path, record.writtenName, isClean ? cut : maskedPart),
    responseStatus: { metadata: {}, code },
    requestReceivedTimestamp: received,
    stageTimestamp: nowMs === receivedMs ? received : microTime(nowMs),
    annotations: annotationsOf(decision, reason),
  };
}

function annotationsOf(decision: string, reason: string): Readonly<Record<string, string>> | undefined {
  if (decision === '') return undefined;
  return { 'authorization.k8s.io/decision': decision, 'authorization.k8s.io/reason': cut(reason) };
}

export interface AuditUser {
  readonly username?: string | undefined;
  readonly uid?: string | undefined;
  readonly groups?: readonly string[] | undefined;
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}

const NO_USER: AuditUser = {};

function auditUser({ name, uid, groups, extra }: UserInfo): AuditUser {
  return {
    username: name,
    uid: uid === '' ? undefined : uid,
    groups,
    extra: Object.keys(extra).length > 0 ? extra : undefined,
  };
}

function auditObject(path: ResourcePath, writtenName: string, shown: (part: string) => string) {
  const { group, version, resource, namespace, name, subresource } = path;
  return {
    resource: shown(resource),
    namespace: shown(namespace) || undefined,
    name: (name === '' ? maskedPart(writtenName) : shown(name)) || undefined,
    apiGroup: shown(group) || undefined,
    apiVersion: shown(version),
    subresource: shown(subresource) || undefined,
  };
}

function maskedPart(part: string): string {
  return cut(masked(part));
}

function cut(text: string): string {
  return text.length <= TEXT_CHARACTERS_MAX ? text : `${text.slice(0, TEXT_CHARACTERS_MAX)}…`;
}

const SUSPECT = /(?:pak|local)_|ey[JI]/;
const RUN = /[\w.-]+/g;
const KEY = /(?:pak|local)_[\w-]+/g;
/** A JSON Web Token is this, a dot and the rest of the run. */
const TOKEN_START = /ey[JI][\w-]{5}/;
const SECRET_PARAMETER = /([?&](?:access_|refresh_|id_)?(?:token|key|password|secret)=)[^&]*/gi;
const MASK = '[masked]';

/** A text of a client, with everything masked that looks like a credential: users paste credentials into the wrong place. */
export function masked(text: string): string {
  const shown = text.includes('%') && mayHide(text) ? unescaped(text) : text;
  const safe = SUSPECT.test(shown) ? shown.replace(RUN, maskedRun) : shown;
  return safe.replace(SECRET_PARAMETER, `$1${MASK}`);
}

/** Takes time in proportion to the length, unlike one pattern for tokens, which reads from each `ey` to the end of the run. */
function maskedRun(run: string): string {
  const start = run.slice(0, run.lastIndexOf('.') + 1).search(TOKEN_START);
  return start < 0 ? run.replace(KEY, MASK) : run.slice(0, start).replace(KEY, MASK) + MASK;
}

/** True for escaped letters and digits, which no client has to escape. */
function mayHide(text: string): boolean {
  return /%(?:3\d|[46][1-9a-f]|[57][0-9a]|5f|2d|2e)/i.test(text);
}

function unescaped(text: string): string {
  return text.replace(/%([0-7][0-9a-f])/gi, (whole, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16));
    return /[\w.-]/.test(character) ? character : whole;
  });
}
