/**
 * The local administrator: read access to the master key allows to forge any key, so it is administrator access. The `keys` commands use it on
 * the machine of the API, before the first key exists. A credential contains its creation time in seconds and is valid for a minute.
 */

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { UserInfo } from '../../apiserver/user.ts';
import type { Clock } from '../../base/clock.ts';
import { readMasterKey } from './master-key.ts';
import { ADMINISTRATORS, AUTHENTICATED } from '../identity.ts';

export const LOCAL_ADMINISTRATOR: UserInfo = {
  name: 'system:local-administrator',
  uid: '',
  groups: [ADMINISTRATORS, AUTHENTICATED],
  extra: {},
};

const PREFIX = 'local_';
const LIFE_SECONDS = 60;
const CREDENTIAL = /^local_(\d{10,12})_([A-Za-z0-9_-]{43})$/u;

export class LocalAdministrator {
  readonly #secret: Buffer;
  readonly #clock: Clock;

  /** `secret` is derived from the master key for this purpose. */
  constructor(secret: Buffer, clock: Clock) {
    this.#secret = secret;
    this.#clock = clock;
  }

  /** A bearer token that is valid for a minute. */
  credential(): string {
    const issuedAt = String(Math.floor(this.#clock.now() / 1000));
    return `${PREFIX}${issuedAt}_${this.#mac(issuedAt).toString('base64url')}`;
  }

  /** The local administrator, if the bearer token is its credential. */
  authenticate(token: string): UserInfo | undefined {
    const [, issuedAt, mac] = CREDENTIAL.exec(token) ?? [];
    if (issuedAt === undefined || mac === undefined) return undefined;
    const isGenuine = timingSafeEqual(this.#mac(issuedAt), Buffer.from(mac, 'base64url'));
    const ageSeconds = Math.abs(this.#clock.now() / 1000 - Number(issuedAt));
    return isGenuine && ageSeconds <= LIFE_SECONDS ? LOCAL_ADMINISTRATOR : undefined;
  }

  #mac(issuedAt: string): Buffer {
    return createHmac('sha256', this.#secret).update(issuedAt).digest();
  }
}

/** For commands on the machine of the API. Undefined if the folder has no master key. Throws `TerminalError` if it cannot be read. */
export async function openLocalAdministrator(
  dataDir: string,
  clock: Clock,
): Promise<LocalAdministrator | undefined> {
  const key = await readMasterKey(dataDir, randomBytes);
  return key && new LocalAdministrator(key.localAdministrator, clock);
}
