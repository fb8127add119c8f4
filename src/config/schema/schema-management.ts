/** `managementApi`: the key and token API. */

import * as z from 'zod';
import { bindAddress, choice, duration, flag, label, text } from './schema-fields.ts';

const DAY_MS = 86_400_000;
const YEARS_MS = 3_650 * DAY_MS;

export const managementSchema = z
  .strictObject({
    enabled: flag('Serve it beside the sync; the api command serves it whatever this says.', false),
    bindAddress: bindAddress('Where the API is served.', '127.0.0.1:8443'),
    tls: z
      .strictObject({
        certFile: text(
          'PEM certificate chain. Empty: self-signed, kept in dataDir, CA written to dataDir/ca.crt.',
        ),
        keyFile: text('PEM private key of the certificate.'),
      })
      .prefault({}),
    dataDir: z
      .string()
      .min(1)
      .default('./data')
      .meta({ description: 'Folder for what must survive a restart.' }),
    store: z
      .strictObject({
        driver: choice('Where objects are kept.', ['sqlite', 'memory', 'kubernetes'], 'sqlite'),
        namespace: label(
          'Host namespace of the Secrets of the kubernetes driver. Empty: endpointSyncer.host.namespace; one of its own is safer.',
        ),
      })
      .prefault({}),
    issuer: text('Issuer of tokens. Empty: https://<bindAddress>.'),
    maxTtl: duration('Longest life of a key; 0s: no maximum.', { minMs: 0, maxMs: YEARS_MS }, '0s'),
    tokenTtl: z
      .strictObject({
        default: duration('Life of a token that asks for none.', { minMs: 1_000, maxMs: YEARS_MS }, '24h'),
        max: duration('Longest life of a token.', { minMs: 1_000, maxMs: YEARS_MS }, '168h'),
      })
      .prefault({}),
    delegatedAuth: flag('Ask the host cluster who a caller is and what it may do.', false),
    bootstrapKeyFile: text(
      "File with the first administrator's key: read if it exists, else written (mode 0600).",
    ),
  })
  .prefault({})
  .meta({ description: 'The key and token API.' });
