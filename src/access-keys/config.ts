/** `managementApi`, the section of the key and token API: its fields, its rules, its types. */

import { resolve } from 'node:path';
import * as z from 'zod';
import { parseBindAddress } from '../base/bind-address.ts';
import type { JsonObject } from '../base/json.ts';
import { Fields, missingMember, pathOf, warningAtValue, type Finding } from '../config-file/finding.ts';
import { ordered, requires, type SectionRule } from '../config-file/rule.ts';
import { checkSections } from '../config-file/schema-check.ts';
import {
  bindAddress,
  choice,
  count,
  duration,
  flag,
  optionalMatch,
  path,
  section,
  size,
  url,
  withRule,
} from '../config-file/schema-fields.ts';
import { parseDuration } from '../config-file/units.ts';
import { DNS_LABEL_OR_EMPTY, DNS_LABEL_RULE } from '../kube/names.ts';

const DAY_MS = 86_400_000;
const YEARS_MS = 3_650 * DAY_MS;
const MEBIBYTE = 2 ** 20;
const TEBIBYTE = 2 ** 40;

const WHOLE_CERTIFICATE = {
  schema: { allOf: [requires('certFile', 'keyFile'), requires('keyFile', 'certFile')] },
  check({ certFile, keyFile }) {
    if ((certFile === '') === (keyFile === '')) return [];
    const [missing, there] = certFile === '' ? ['certFile', 'keyFile'] : ['keyFile', 'certFile'];
    return [missingMember([missing], `is required with ${there}`)];
  },
} satisfies SectionRule<{ readonly certFile: string; readonly keyFile: string }>;

/** `managementApi`: the key and token API. */
export const managementSchema = z
  .strictObject({
    enabled: flag('Whether run serves the API too; the command api always serves it.', false),
    bindAddress: bindAddress('Address of the API.', '127.0.0.1:8443'),
    tls: withRule(
      section('', {
        certFile: path(
          'PEM certificate chain. Empty: self-signed, kept in dataDir, CA written to dataDir/ca.crt.',
        ),
        keyFile: path('PEM private key of the certificate.'),
      }),
      WHOLE_CERTIFICATE,
    ),
    dataDir: path(
      'Folder for the database, the signing keys and the certificates. A relative path, the default too, is relative to the file.',
      './data',
    ),
    store: section('', {
      driver: choice(
        'Storage driver. With memory, all data is lost when the process exits.',
        ['sqlite', 'memory', 'kubernetes'],
        'sqlite',
      ),
      namespace: optionalMatch(
        'Host namespace of the Secrets of the kubernetes driver. Empty: endpointSyncer.host.namespace; a separate namespace is safer.',
        DNS_LABEL_OR_EMPTY,
        DNS_LABEL_RULE,
      ),
    }),
    issuer: url(
      'Issuer of tokens. Empty: https://<bindAddress>.',
      'https',
      'an https:// URL without user, query and fragment',
    ),
    maxTtl: duration(
      'Maximum lifetime of a key, such as 720h. 0s: no maximum.',
      { minMs: 0, maxMs: YEARS_MS },
      '0s',
    ),
    tokenTtl: withRule(
      section('', {
        default: duration('Default lifetime of a token.', { minMs: 1_000, maxMs: YEARS_MS }, '24h'),
        max: duration('Maximum lifetime of a token.', { minMs: 1_000, maxMs: YEARS_MS }, '168h'),
      }),
      ordered('default', 'max'),
    ),
    delegatedAuth: flag(
      'Accept tokens of the host cluster: authenticate with TokenReview, authorize with SubjectAccessReview.',
      false,
    ),
    auditLog: section('', {
      maxSize: size(
        'Size of audit.log and of audit-refused.log, beyond which a file is rotated.',
        { min: MEBIBYTE, max: TEBIBYTE },
        '100Mi',
      ),
      maxFiles: count('Rotated files to keep of each.', { min: 0, max: 1000 }, 3),
    }),
    bootstrapKeyFile: path(
      "File with the first administrator's key; created with mode 0600 if it does not exist.",
    ),
  })
  .transform((api) => ({ ...api, issuer: api.issuer === '' ? `https://${api.bindAddress}` : api.issuer }))
  .prefault({})
  .meta({ description: 'The key and token API.' });

type Section = Readonly<z.output<typeof managementSchema>>;

/** `managementApi`, named as in the file: the key and token API. Durations are in milliseconds, sizes in bytes. */
export type ManagementConfig = Section & {
  /** The host cluster: for the store `kubernetes`, and for callers with its tokens. */
  readonly host: { readonly kubeconfig: string; readonly context: string; readonly namespace: string };
};

interface CheckedSection {
  /** Undefined if it is invalid. */
  readonly section: Section | undefined;
  readonly findings: readonly Finding[];
}

const SCHEMA = z.object({ managementApi: managementSchema });

/** `file` has no empty keys; its relative paths are relative to `folder`. */
export function checkManagement(file: JsonObject, folder: string | undefined): CheckedSection {
  const { data, findings } = checkSections(SCHEMA, file);
  const fields = new Fields(file);
  const section = data?.managementApi;
  // The default is a path of the file, as if the file contained it.
  const isMovable = folder !== undefined && fields.text('managementApi.dataDir') === '';
  return {
    section: section && (isMovable ? { ...section, dataDir: resolve(folder, section.dataDir) } : section),
    findings: [...findings, ...issuerWarnings(fields), ...lifetimeWarnings(fields), ...storeWarnings(fields)],
  };
}

/** The server listens on all addresses; a client cannot connect to these. */
const UNSPECIFIED_HOSTS: ReadonlySet<string> = new Set(['', '0.0.0.0', '::']);

function issuerWarnings(fields: Fields): Finding[] {
  const name = 'managementApi.bindAddress';
  const address = parseBindAddress(fields.text(name));
  if (address === undefined || !UNSPECIFIED_HOSTS.has(address.host)) return [];
  if (fields.text('managementApi.issuer') !== '') return [];
  const message =
    'clients cannot connect to this address, and it is the default issuer of tokens: set managementApi.issuer to the URL at which clusters reach this API';
  return [warningAtValue(pathOf(name), message)];
}

/** A token cannot outlive the key that issued it. */
function lifetimeWarnings(fields: Fields): Finding[] {
  const longest = fields.text('managementApi.maxTtl');
  const longestMs = parseDuration(longest) ?? 0;
  if (longestMs === 0) return [];
  return ['default', 'max'].flatMap((field) => {
    const name = `managementApi.tokenTtl.${field}`;
    const text = fields.text(name);
    if ((parseDuration(text) ?? 0) <= longestMs) return [];
    const message = `${field} (${text}) is longer than managementApi.maxTtl (${longest}): a token expires with its key at the latest`;
    return [warningAtValue(pathOf(name), message)];
  });
}

function storeWarnings(fields: Fields): Finding[] {
  const name = 'managementApi.store.driver';
  if (fields.text(name) !== 'memory') return [];
  return [warningAtValue(pathOf(name), 'all keys are lost when the process exits; use it for tests only')];
}

// What it needs of the host cluster.

interface HostRight {
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
  /** Absent: the host namespace of the virtual cluster; '': every namespace. */
  readonly namespace?: string;
}

const STORE_VERBS = ['get', 'list', 'watch', 'create', 'patch', 'delete'];

export function rightsOnHost({ store, delegatedAuth }: Section): readonly HostRight[] {
  const secrets = {
    group: '',
    resource: 'secrets',
    ...(store.namespace !== '' && { namespace: store.namespace }),
  };
  const reviews = [
    { group: 'authentication.k8s.io', resource: 'tokenreviews', verb: 'create', namespace: '' },
    { group: 'authorization.k8s.io', resource: 'subjectaccessreviews', verb: 'create', namespace: '' },
  ];
  return [
    ...(store.driver === 'kubernetes' ? STORE_VERBS.map((verb) => ({ ...secrets, verb })) : []),
    ...(delegatedAuth ? reviews : []),
  ];
}
