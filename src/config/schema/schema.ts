/**
 * The schema of a configuration file. Sections of vCluster's format are open: only the keys that this program reads are
 * checked. Sections of our own are closed: an unknown key is an error.
 */

import * as z from 'zod';
import { experimentalSchema, syncSchema } from './schema-sync.ts';
import { namelessSyncerSchema, syncerSchema } from './schema-syncer.ts';
import { ONE_NAMESPACE_MODE, ordered, SECTIONS_SCHEMA, WHOLE_CERTIFICATE } from '../rules.ts';
import {
  bindAddress,
  choice,
  count,
  duration,
  flag,
  label,
  path,
  section,
  size,
  url,
  withRule,
} from './schema-fields.ts';

const DAY_MS = 86_400_000;
const YEARS_MS = 3_650 * DAY_MS;
const MEBIBYTE = 2 ** 20;
const TEBIBYTE = 2 ** 40;

/** `managementApi`: the key and token API. */
const managementSchema = z
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
      namespace: label(
        'Host namespace of the Secrets of the kubernetes driver. Empty: endpointSyncer.host.namespace; a separate namespace is safer.',
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

export const configSchema = z.looseObject({
  sync: syncSchema,
  experimental: experimentalSchema,
  endpointSyncer: syncerSchema,
  managementApi: managementSchema,
});

/** The same for commands that need no virtual cluster: `endpointSyncer.name` may be absent. */
export const namelessConfigSchema = configSchema.extend({ endpointSyncer: namelessSyncerSchema });

/** A valid file as the schema parses it: defaults filled in, durations in ms, sizes in bytes. */
export type ParsedConfig = z.output<typeof configSchema>;

// The JSON Schema of a configuration file, for editors.

/** Identifies the schema wherever it is copied to; it is not an address. */
const ID = 'urn:endpoint-syncer:configuration';

function jsonSchema() {
  return z.toJSONSchema(configSchema, { target: 'draft-7', io: 'input' });
}

/** Text of `config/schema.json`. Draft 7 is what editors understand best. */
export function configJsonSchema(): string {
  const { $schema, ...schema } = jsonSchema();
  const titled = {
    $schema,
    $id: ID,
    title: 'endpoint-syncer configuration',
    description: 'A vCluster configuration file with the sections endpointSyncer and managementApi added.',
    ...schema,
    ...SECTIONS_SCHEMA,
    ...ONE_NAMESPACE_MODE.schema,
  };
  return `${JSON.stringify(titled, null, 2)}\n`;
}

type Node = z.core.JSONSchema.BaseSchema;

/** Text of `flag-fields.json`: the fields of our own sections that hold one scalar, each with its type and its words. */
export function flagFieldsJson(): string {
  const { properties } = jsonSchema();
  const rows = ['endpointSyncer', 'managementApi'].flatMap((section) =>
    scalarsIn(properties?.[section] as Node, [section]),
  );
  return `[\n${rows.map((row) => `  ${JSON.stringify(row)}`).join(',\n')}\n]\n`;
}

function scalarsIn({ properties, anyOf, type, enum: words }: Node, path: readonly string[]): object[] {
  if (properties !== undefined)
    return Object.entries(properties).flatMap(([key, field]) => scalarsIn(field as Node, [...path, key]));
  // Of several forms, the first one is the short one.
  if (anyOf !== undefined) return scalarsIn(anyOf[0] as Node, path);
  return type === 'array' || type === 'object' ? [] : [{ path: path.join('.'), type, words }];
}
