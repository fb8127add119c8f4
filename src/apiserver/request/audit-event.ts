/** Entries of the audit log: user, verb, object, time and outcome of a request. Never a header or a body. */

import { microTime } from '../../kube/object.ts';
import type { AccessDecision, ResourcePath } from './request-info.ts';
import type { UserInfo } from '../user.ts';

/** Facts about one request, collected while it is served. */
export interface RequestRecord {
  readonly id: string;
  /** Path and query, as the client sent them. */
  readonly url: string;
  /** IP address of the peer. */
  readonly address: string;
  readonly userAgent: string;
  /** Epoch milliseconds. */
  readonly receivedMs: number;
  /** The verb of authorization; for non-resource requests the method in lower case. */
  readonly verb: string;
  readonly path: ResourcePath | undefined;
  /** Undefined: not authenticated. */
  user: UserInfo | undefined;
  /** `''`: the request failed before authorization. */
  decision: 'allow' | 'forbid' | '';
  /** The reason of the decision. */
  reason: string;
  /** The name of the object that was written: the URL of a create does not contain it. */
  writtenName: string;
}

export function recordDecision(record: RequestRecord, { isAllowed, reason }: AccessDecision): void {
  record.decision = isAllowed ? 'allow' : 'forbid';
  record.reason = reason;
}

/** `Event` of audit.k8s.io/v1 at the level `Metadata`. */
export interface AuditEvent {
  readonly kind: 'Event';
  readonly apiVersion: 'audit.k8s.io/v1';
  readonly level: 'Metadata';
  readonly auditID: string;
  readonly stage: 'ResponseComplete';
  readonly requestURI: string;
  readonly verb: string;
  readonly user: AuditUser;
  readonly sourceIPs: readonly string[];
  readonly userAgent?: string | undefined;
  readonly objectRef?: AuditObject | undefined;
  readonly responseStatus: { readonly metadata: object; readonly code: number };
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

export interface AuditUser {
  readonly username?: string | undefined;
  readonly uid?: string | undefined;
  readonly groups?: readonly string[] | undefined;
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}

export interface AuditObject {
  readonly resource: string;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly apiGroup?: string | undefined;
  readonly apiVersion: string;
  readonly subresource?: string | undefined;
}

const USER_AGENT_CHARACTERS_MAX = 1024;
/** Of a URL, a part of it, and a reason: a client chooses their length, and a long line displaces others. */
const TEXT_CHARACTERS_MAX = 512;

/** JSON omits the fields that are undefined. Events have one shape, which engines copy and encode fastest. */
export function auditEvent(record: RequestRecord, code: number, nowMs: number): AuditEvent {
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
    objectRef: path && auditObject(isClean ? path : maskedPath(path), record.writtenName),
    responseStatus: { metadata: {}, code },
    requestReceivedTimestamp: received,
    stageTimestamp: nowMs === receivedMs ? received : microTime(nowMs),
    annotations:
      decision === ''
        ? undefined
        : { 'authorization.k8s.io/decision': decision, 'authorization.k8s.io/reason': cut(reason) },
  };
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

function auditObject(path: ResourcePath, writtenName: string): AuditObject {
  const { group, version, resource, namespace, name, subresource } = path;
  return {
    resource: cut(resource),
    namespace: namespace === '' ? undefined : cut(namespace),
    name: cut(name === '' ? masked(writtenName) : name) || undefined,
    apiGroup: group === '' ? undefined : cut(group),
    apiVersion: cut(version),
    subresource: subresource === '' ? undefined : cut(subresource),
  };
}

function cut(text: string): string {
  return text.length <= TEXT_CHARACTERS_MAX ? text : `${text.slice(0, TEXT_CHARACTERS_MAX)}…`;
}

function maskedPath({ group, version, resource, namespace, name, subresource }: ResourcePath): ResourcePath {
  return {
    group: masked(group),
    version: masked(version),
    resource: masked(resource),
    namespace: masked(namespace),
    name: masked(name),
    subresource: masked(subresource),
  };
}

/** Most texts contain none of these. */
const SUSPECT = /(?:pak|local)_|ey[JI]/;
/** The characters of credentials. */
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
