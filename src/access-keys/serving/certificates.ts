/** The certificate of the server: from files, which may change while it runs, or self-signed. */

import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { TlsPair } from '../../apiserver/http/http-server.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { TerminalError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { checkPair } from './check-pair.ts';
import { selfSigned, servingNames } from './self-signed.ts';

export interface CertificateOptions {
  /** PEM, the chain from the server's own certificate on. `''` together with `keyFile`: self-signed. */
  readonly certFile: string;
  readonly keyFile: string;
  /** Where the self-signed certificate and its authority (`ca.crt`) are kept. */
  readonly dataDir: string;
  /** What the server listens on; `''` is every address. */
  readonly host: string;
  /** More host names and IP addresses by which clients know the server. */
  readonly names?: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface ServingCertificate extends Disposable {
  readonly pair: TlsPair;
  /** PEM of the authority that clients must trust; undefined where the certificate was given. */
  readonly authority: string | undefined;
  /** Tells of every later pair; there is one listener. */
  follow(listener: (pair: TlsPair) => void): void;
}

/** How often files are read again: a mounted Secret takes a minute to change anyway. */
const LOOK_AGAIN_MS = 10_000;

interface Served {
  readonly pair: TlsPair;
  readonly authority?: string;
}

/** Throws {@link TerminalError} when there is no certificate to start with. */
export async function openServingCertificate(options: CertificateOptions): Promise<ServingCertificate> {
  const first = await load(options);
  warnOfExpiry(first.pair, options);
  return new FollowedCertificate(options, first);
}

class FollowedCertificate implements ServingCertificate {
  readonly authority: string | undefined;
  readonly #options: CertificateOptions;
  #pair: TlsPair;
  #listener: (pair: TlsPair) => void = () => undefined;
  #timer: Timer | undefined;
  #isClosed = false;
  /** The problem that was logged last: once is enough. */
  #problem = '';

  constructor(options: CertificateOptions, { pair, authority }: Served) {
    this.#options = options;
    this.#pair = pair;
    this.authority = authority;
    this.#lookLater();
  }

  get pair(): TlsPair {
    return this.#pair;
  }

  follow(listener: (pair: TlsPair) => void): void {
    this.#listener = listener;
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  #lookLater(): void {
    if (this.#isClosed) return;
    this.#timer = this.#options.clock.schedule(LOOK_AGAIN_MS, () => {
      void this.#look().finally(() => this.#lookLater());
    });
  }

  async #look(): Promise<void> {
    const { logger } = this.#options;
    try {
      const { pair } = await load(this.#options);
      this.#problem = '';
      if (this.#isClosed || (pair.cert === this.#pair.cert && pair.key === this.#pair.key)) return;
      this.#listener(pair);
      this.#pair = pair;
      logger.info({ validTo: new X509Certificate(pair.cert).validTo }, 'serving with a new certificate');
      warnOfExpiry(pair, this.#options);
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      // Half of a pair may be there for a moment; the old one serves meanwhile.
      if (problem !== this.#problem) {
        logger.warn({ problem }, 'the new certificate cannot be used, the old one stays');
      }
      this.#problem = problem;
    }
  }
}

async function load(options: CertificateOptions): Promise<Served> {
  const { certFile, keyFile, dataDir, host, names, clock } = options;
  if (certFile === '' && keyFile === '') return selfSigned(dataDir, servingNames(host, names), clock.now());
  if (certFile === '' || keyFile === '') {
    throw new TerminalError('managementApi.tls needs both certFile and keyFile, or none of them');
  }
  const pair = { cert: await readNamed(certFile, 'certFile'), key: await readNamed(keyFile, 'keyFile') };
  const problem = checkPair(pair);
  if (problem !== undefined)
    throw new TerminalError(`managementApi.tls: ${problem} (${certFile}, ${keyFile})`);
  return { pair };
}

async function readNamed(path: string, field: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    throw new TerminalError(
      `managementApi.tls.${field}: ${path} cannot be read (${code}): give a file that this user can read`,
      { cause: error },
    );
  }
}

function warnOfExpiry({ cert }: TlsPair, { clock, logger }: CertificateOptions): void {
  const { validTo } = new X509Certificate(cert);
  if (Date.parse(validTo) > clock.now()) return;
  logger.warn({ validTo }, 'the certificate has expired: clients will refuse it');
}
