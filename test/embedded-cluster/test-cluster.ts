/** An embedded cluster with a client of raw requests. */

import { type FaultyCluster, startFaultyCluster } from './faulty-cluster.ts';
import type { EmbeddedClusterOptions } from '../../src/embedded-cluster/embedded-cluster.ts';
import type { JsonValue } from '../../src/base/json.ts';
import { type RawAnswer, RawClient } from '../contract/raw-client.ts';

export class TestCluster implements AsyncDisposable {
  readonly embedded: FaultyCluster;
  readonly client: RawClient;

  constructor(embedded: FaultyCluster, token?: string) {
    this.embedded = embedded;
    this.client = new RawClient({ url: embedded.url, ...(token === undefined ? {} : { token }) });
  }

  static async open(options: Partial<EmbeddedClusterOptions> = {}, token?: string): Promise<TestCluster> {
    return new TestCluster(await startFaultyCluster({ name: 'test', ...options }), token);
  }

  send(method: string, path: string, body?: JsonValue, headers = {}): Promise<RawAnswer> {
    return this.client.send({ method, path, headers, ...(body === undefined ? {} : { body }) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client[Symbol.asyncDispose]();
    await this.embedded[Symbol.asyncDispose]();
  }
}
