/** Entries of the audit log: user, verb, object, time and outcome of a request. Never a header or a body. */

import type { AccessDecision } from './authorizer.ts';
import type { ResourcePath } from './request-info.ts';
import type { UserInfo } from './user.ts';

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
  readonly userAgent?: string;
  readonly objectRef?: AuditObject;
  readonly responseStatus: { readonly metadata: object; readonly code: number };
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface AuditUser {
  readonly username?: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export interface AuditObject {
  readonly resource: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly apiGroup?: string;
  readonly apiVersion: string;
  readonly subresource?: string;
}

const USER_AGENT_CHARACTERS_MAX = 1024;

export function auditEvent(record: RequestRecord, code: number, nowMs: number): AuditEvent {
  const { id, url, verb, user, address, userAgent, path, decision, reason, receivedMs } = record;
  return {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: id,
    stage: 'ResponseComplete',
    requestURI: masked(url),
    verb,
    user: user ? auditUser(user) : {},
    sourceIPs: [address],
    ...(userAgent === '' ? {} : { userAgent: masked(userAgent).slice(0, USER_AGENT_CHARACTERS_MAX) }),
    ...(path ? { objectRef: auditObject(path, record.writtenName) } : {}),
    responseStatus: { metadata: {}, code },
    requestReceivedTimestamp: microTime(receivedMs),
    stageTimestamp: microTime(nowMs),
    ...(decision === ''
      ? {}
      : {
          annotations: {
            'authorization.k8s.io/decision': decision,
            'authorization.k8s.io/reason': reason,
          },
        }),
  };
}

function auditUser({ name, uid, groups, extra }: UserInfo): AuditUser {
  const hasExtra = Object.keys(extra).length > 0;
  return { username: name, ...(uid === '' ? {} : { uid }), groups, ...(hasExtra ? { extra } : {}) };
}

function auditObject(path: ResourcePath, writtenName: string): AuditObject {
  const { group, version, resource, namespace, subresource } = path;
  const name = path.name === '' ? writtenName : path.name;
  return {
    resource: masked(resource),
    ...(namespace === '' ? {} : { namespace: masked(namespace) }),
    ...(name === '' ? {} : { name: masked(name) }),
    ...(group === '' ? {} : { apiGroup: masked(group) }),
    apiVersion: masked(version),
    ...(subresource === '' ? {} : { subresource: masked(subresource) }),
  };
}

/** The clock has milliseconds; the format has six digits. */
function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}

const LOOKS_SECRET = /(?:pak|local)_[\w-]+|ey[JI][\w-]{5,}\.[\w-]*(?:\.[\w-]*)*/g;
const SECRET_PARAMETER = /([?&](?:access_|refresh_|id_)?(?:token|key|password|secret)=)[^&]*/gi;
const MASK = '[masked]';

/** A text of a client, with everything masked that looks like a credential: users paste credentials into the wrong place. */
export function masked(text: string): string {
  const shown = text.includes('%') && mayHide(text) ? unescaped(text) : text;
  return shown.replace(LOOKS_SECRET, MASK).replace(SECRET_PARAMETER, `$1${MASK}`);
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
