/** A limit that all users share: one user cannot exhaust it. */

/** Whom a request counts for. */
export interface Sender {
  /** Name of the user. */
  readonly name: string;
  /** Administrators and the webhooks of clusters: others leave a part of each limit to them. */
  readonly isPrivileged: boolean;
}

/** Of the limit. */
const SHARE_OF_A_USER = 1 / 4;
const SHARE_FOR_PRIVILEGED = 1 / 8;

export class SharedLimit {
  readonly #max: number;
  /** By user name. */
  readonly #takenBy = new Map<string, number>();
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** False, and nothing taken, when the user or all users would have too much. */
  take({ name, isPrivileged }: Sender, amount = 1): boolean {
    const own = (this.#takenBy.get(name) ?? 0) + amount;
    const all = this.#taken + amount;
    if (own > this.#max * SHARE_OF_A_USER) return false;
    if (all > this.#max * (isPrivileged ? 1 : 1 - SHARE_FOR_PRIVILEGED)) return false;
    this.#takenBy.set(name, own);
    this.#taken = all;
    return true;
  }

  release({ name }: Sender, amount = 1): void {
    const left = (this.#takenBy.get(name) ?? 0) - amount;
    if (left > 0) this.#takenBy.set(name, left);
    else this.#takenBy.delete(name);
    this.#taken -= amount;
  }
}
