/** What client-go 0.36 refuses of the cluster and the user that a context selects (`clientcmd/validation.go`, `transport.TLSConfigFor`). */

import { X509Certificate } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import { fileProblem } from '../../base/errors.ts';
import { ownValue, text, type JsonValue } from '../../base/json.ts';
import { checkExec } from './exec-plugin.ts';
import { entryError, textOf, type NamedEntry } from './kubeconfig-file.ts';

const ONE_OF_BOTH = 'which are one setting: remove one of them';

/** Throws `TerminalError`. `isSecure`: the server has an https URL. */
export function checkCluster(cluster: NamedEntry, isSecure: boolean): void {
  const { fields } = cluster;
  const [file, data] = [
    textOf(fields, 'certificate-authority'),
    textOf(fields, 'certificate-authority-data'),
  ];
  if (file !== undefined && data !== undefined)
    throw entryError(
      cluster,
      'certificate-authority',
      `is set beside certificate-authority-data, ${ONE_OF_BOTH}`,
    );
  if (file !== undefined) checkReadable(cluster, 'certificate-authority', file);
  if (isSecure && ownValue(fields, 'insecure-skip-tls-verify') === true && (file ?? data) !== undefined)
    throw entryError(
      cluster,
      'insecure-skip-tls-verify',
      'is set beside a certificate authority, which would not be used: remove one of them',
    );
}

/** The same for a user, whose credentials are not read. */
export function checkUser(user: NamedEntry, isSecure: boolean): void {
  const { fields } = user;
  const isSet = (field: string): boolean => text(fields, field) !== '';
  const basic = ['username', 'password'].find(isSet);
  if (isSet('token') && basic !== undefined)
    throw entryError(
      user,
      basic,
      'is set beside a token, and only one of them can be sent: remove one of them',
    );
  checkClientCertificate(user);
  if ('exec' in fields && 'auth-provider' in fields)
    throw entryError(
      user,
      'auth-provider',
      'is set beside exec, and only one of them can be used: remove one of them',
    );
  if ('exec' in fields) checkExec(user, isSecure);
  const impersonated = ['as-uid', 'as-groups', 'as-user-extra'].find((field) =>
    hasContent(ownValue(fields, field)),
  );
  if (impersonated !== undefined && !isSet('as'))
    throw entryError(
      user,
      impersonated,
      `has no effect without users[${user.name}].as: name the user to impersonate`,
    );
}

/** A key without a certificate has no effect. */
function checkClientCertificate(user: NamedEntry): void {
  const { fields } = user;
  const [certificate, key] = ['client-certificate', 'client-key'].map((field) => {
    const names = [field, `${field}-data`].filter((name) => text(fields, name) !== '');
    return { names, file: textOf(fields, field) };
  });
  if (certificate === undefined || key === undefined || certificate.names.length === 0) return;
  for (const { names } of [certificate, key])
    if (names.length > 1) throw entryError(user, names[0] ?? '', `is set beside ${names[1]}, ${ONE_OF_BOTH}`);
  if (key.names.length === 0)
    throw entryError(
      user,
      certificate.names[0] ?? '',
      'has no client-key or client-key-data beside it: add its key',
    );
  if (certificate.file !== undefined) checkReadable(user, 'client-certificate', certificate.file);
  if (key.file !== undefined) checkReadable(user, 'client-key', key.file);
}

function checkReadable(entry: NamedEntry, field: string, file: string): void {
  try {
    closeSync(openSync(file, 'r'));
  } catch (cause) {
    const problem = `names a file that cannot be read, ${file}: ${fileProblem(cause)}; correct the path`;
    throw entryError(entry, field, problem, cause);
  }
}

function hasContent(value: JsonValue | undefined): boolean {
  return typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : Boolean(value);
}

/** As for Go, of the certificates in a file of authorities one has to be readable. */
export function hasCertificate(pem: string | Buffer): boolean {
  const blocks = String(pem).match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/gu) ?? [];
  return blocks.some((block) => {
    try {
      return new X509Certificate(block).raw.length > 0;
    } catch {
      return false;
    }
  });
}

export const NO_CERTIFICATE = 'is not a certificate in PEM; correct it, or write the file again';
