/**
 * The administrator without a key: whoever can read the master key could forge any key, and may as well ask. `keys` does so on the machine of
 * the API, before there is a key to ask with. The credential names the second in which it was made and is good for a minute.
 */

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { UserInfo } from '../../apiserver/request/user.ts';
import type { Clock } from '../../base/clock.ts';
import { readMasterKey } from '../credentials/master-key.ts';
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

  /** `secret` is derived from the master key for this purpose alone. */
  constructor(secret: Buffer, clock: Clock) {
    this.#secret = secret;
    this.#clock = clock;
  }

  /** A bearer token for the next minute. */
  credential(): string {
    const madeAt = String(Math.floor(this.#clock.now() / 1000));
    return `${PREFIX}${madeAt}_${this.#mac(madeAt).toString('base64url')}`;
  }

  /** Who sent this bearer token, if it is such a credential. */
  authenticate(token: string): UserInfo | undefined {
    const [, madeAt, mac] = CREDENTIAL.exec(token) ?? [];
    if (madeAt === undefined || mac === undefined) return undefined;
    const isGenuine = timingSafeEqual(this.#mac(madeAt), Buffer.from(mac, 'base64url'));
    const ageSeconds = Math.abs(this.#clock.now() / 1000 - Number(madeAt));
    return isGenuine && ageSeconds <= LIFE_SECONDS ? LOCAL_ADMINISTRATOR : undefined;
  }

  #mac(madeAt: string): Buffer {
    return createHmac('sha256', this.#secret).update(madeAt).digest();
  }
}

/** For commands on the machine of the API. Undefined when no API has run over this folder. Throws `TerminalError` when its master key cannot be read. */
export async function openLocalAdministrator(
  dataDir: string,
  clock: Clock,
): Promise<LocalAdministrator | undefined> {
  const key = await readMasterKey(dataDir, randomBytes);
  return key && new LocalAdministrator(key.localAdministrator, clock);
}
