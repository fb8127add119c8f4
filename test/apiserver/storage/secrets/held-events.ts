/** A client of a host cluster whose watch events arrive when a test wants. */

import type { WatchClient, WatchHandler } from '../../../../src/kube/types.ts';

export class HeldEvents {
  readonly #held: (() => void)[] = [];
  #isHeld = false;
  /** What the host says is its revision; undefined: the truth. */
  revision: string | undefined;

  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
    for (const deliver of this.#held.splice(0)) deliver();
  }

  /** As `release`, but the held events are lost: a restore of the host has undone their writes. */
  lose(): void {
    this.#held.splice(0);
    this.release();
  }

  of(client: WatchClient): WatchClient {
    const watch: WatchClient['watch'] = (resource, options, handler) =>
      client.watch(resource, options, this.#handler(handler));
    const request: WatchClient['request'] = async (method, path, body, options) => {
      const response = await client.request(method, path, body, options);
      const { revision } = this;
      if (revision === undefined || !path.includes('fieldSelector')) return response;
      return { ...(response as object), metadata: { resourceVersion: revision } };
    };
    return new Proxy(client, {
      get(target, name) {
        if (name === 'watch') return watch;
        if (name === 'request') return request;
        const member: unknown = Reflect.get(target, name);
        return typeof member === 'function' ? (member.bind(target) as unknown) : member;
      },
    });
  }

  #handler(handler: WatchHandler): WatchHandler {
    return {
      ...handler,
      event: (type, object) => {
        if (this.#isHeld) this.#held.push(() => handler.event(type, object));
        else handler.event(type, object);
      },
    };
  }
}
