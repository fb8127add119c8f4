/** The serving certificate: from files that may be replaced while the server runs, or self-signed. */

import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { TlsPair } from '../../apiserver/http/http-server.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { codeOf, TerminalError, messageOf } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { checkPair, selfSigned, servingNames } from './self-signed.ts';

export interface CertificateOptions {
  /** PEM, the chain beginning with the certificate of the server. `''` together with `keyFile`: self-signed. */
  readonly certFile: string;
  readonly keyFile: string;
  /** Folder of the self-signed certificate and its authority (`ca.crt`). */
  readonly dataDir: string;
  /** The host that the server listens on; `''` is every address. */
  readonly host: string;
  /** Additional host names and IP addresses of the server. */
  readonly names?: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Interval of reloads; the kubelet takes about a minute to update a mounted Secret. */
const RELOAD_INTERVAL_MS = 10_000;

interface Served {
  readonly pair: TlsPair;
  readonly authority?: string;
}

/** Throws {@link TerminalError} if there is no valid certificate. */
export async function openServingCertificate(options: CertificateOptions): Promise<ServingCertificate> {
  const first = await load(options);
  warnOfValidity(first.pair, options);
  return new ServingCertificate(options, first);
}

export class ServingCertificate implements Disposable {
  /** PEM of the authority that clients must trust; undefined for a configured certificate. */
  readonly authority: string | undefined;
  readonly #options: CertificateOptions;
  #pair: TlsPair;
  #listener: (pair: TlsPair) => void = () => undefined;
  #timer: Timer | undefined;
  #isClosed = false;
  /** The last problem that was logged; it is logged once. */
  #problem = '';

  constructor(options: CertificateOptions, { pair, authority }: Served) {
    this.#options = options;
    this.#pair = pair;
    this.authority = authority;
    this.#scheduleReload();
  }

  get pair(): TlsPair {
    return this.#pair;
  }

  /** Calls the listener with every later pair; there is one listener. */
  onRenewal(listener: (pair: TlsPair) => void): void {
    this.#listener = listener;
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  #scheduleReload(): void {
    if (this.#isClosed) return;
    this.#timer = this.#options.clock.schedule(RELOAD_INTERVAL_MS, () => {
      void this.#reload().finally(() => this.#scheduleReload());
    });
  }

  async #reload(): Promise<void> {
    const { logger } = this.#options;
    try {
      const { pair } = await load(this.#options);
      this.#problem = '';
      if (this.#isClosed || (pair.cert === this.#pair.cert && pair.key === this.#pair.key)) return;
      this.#listener(pair);
      this.#pair = pair;
      logger.info({ validTo: new X509Certificate(pair.cert).validTo }, 'serving with a new certificate');
      warnOfValidity(pair, this.#options);
    } catch (error) {
      const problem = messageOf(error);
      // The files of a pair are not replaced atomically; the old pair is served in the meantime.
      if (problem !== this.#problem) {
        logger.warn({ problem }, 'cannot use the new certificate, serving with the old one');
      }
      this.#problem = problem;
    }
  }
}

async function load(options: CertificateOptions): Promise<Served> {
  const { certFile, keyFile, dataDir, host, names, clock, logger } = options;
  if (certFile === '' && keyFile === '') {
    const served = await selfSigned(dataDir, servingNames(host, names), clock.now());
    if (served.isReissued)
      logger.warn({ dataDir }, 'the authority was not valid yet: clients need the new ca.crt');
    return served;
  }
  if (certFile === '' || keyFile === '') {
    throw new TerminalError('managementApi.tls needs both certFile and keyFile or neither');
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
    const code = codeOf(error) || 'unknown error';
    throw new TerminalError(
      `managementApi.tls.${field}: ${path} cannot be read (${code}): name a file that this user can read`,
      { cause: error },
    );
  }
}

function warnOfValidity({ cert }: TlsPair, { clock, logger }: CertificateOptions): void {
  const { validFrom, validTo } = new X509Certificate(cert);
  const nowMs = clock.now();
  if (Date.parse(validTo) <= nowMs) {
    logger.warn({ validTo }, 'the certificate has expired: clients will reject it');
  } else if (Date.parse(validFrom) > nowMs) {
    logger.warn({ validFrom }, 'the certificate is not valid yet: clients will reject it');
  }
}
