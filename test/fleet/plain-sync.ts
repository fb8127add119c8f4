/** A sync that leads and has its caches from the start, and only remembers what became of it. */

import { TerminalError } from '../../src/base/errors.ts';
import type { Config } from '../../src/syncer/config/config.ts';
import type { MemberSync } from '../../src/fleet/member.ts';

export class PlainSync implements MemberSync {
  config: Config;
  isStopped = false;
  /** Reloads wait for it. */
  gate: Promise<void> = Promise.resolve();
  problem: string | undefined;
  readonly #failing = Promise.withResolvers<string>();
  readonly #pass: Promise<void>;

  /** `pass`: its first one. */
  constructor(config: Config, pass: Promise<void>) {
    this.config = config;
    this.#pass = pass;
  }

  readonly failed = this.#failing.promise;

  fail(reason: string): void {
    this.#failing.resolve(reason);
  }

  reloads = 0;

  async reload(config: Config): Promise<void> {
    this.reloads += 1;
    await this.gate;
    if (this.problem !== undefined) throw new TerminalError(this.problem);
    this.config = config;
  }

  reloadFailed(): void {}

  async isStandby(): Promise<boolean> {
    return false;
  }

  async whenLeading(): Promise<void> {}

  async whenCached(signal: AbortSignal): Promise<boolean> {
    return !signal.aborted;
  }

  checks(): ReturnType<MemberSync['checks']> {
    return {};
  }

  failedChecks(): readonly string[] {
    return [];
  }

  async firstPass(): Promise<[]> {
    await this.#pass;
    return [];
  }

  async stop(): Promise<number> {
    this.isStopped = true;
    return 0;
  }
}
