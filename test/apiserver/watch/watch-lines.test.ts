/** Encoding of watch events, shared by all watchers. */

import { connect, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import {
  startEmbeddedCluster,
  type EmbeddedCluster,
} from '../../../src/embedded-cluster/embedded-cluster.ts';
import { ObjectViews } from '../../../src/apiserver/objects/object-view.ts';
import { WatchLines } from '../../../src/apiserver/watch/watch-streams.ts';
import { builtInKinds } from '../../../src/embedded-cluster/kinds/built-in-kinds.ts';
import { allowEverything } from '../../../src/apiserver/request/request-info.ts';
import type { StoredEntry } from '../../../src/apiserver/storage/store.ts';

const COLLECTION = '/api/v1/namespaces/default/configmaps';

describe('lines', () => {
  test('all watchers share the bytes of one event', () => {
    const definition = builtInKinds(allowEverything, undefined).find('', 'v1', 'configmaps');
    if (!definition) throw new Error('there is no such kind');
    const entryOf = (revision: number): StoredEntry => ({
      key: { resource: 'configmaps', namespace: 'default', name: 'a' },
      value: { metadata: { name: 'a' }, data: { revision: String(revision) } },
      revision,
    });
    const lines = new WatchLines(new ObjectViews());
    const [first, second] = [entryOf(2), entryOf(3)];
    const added = lines.event('ADDED', definition, first);
    expect(lines.event('ADDED', definition, first)).toBe(added);
    expect(String(lines.event('MODIFIED', definition, first))).toMatch(/^\{"type":"MODIFIED".*"2".*\}\n$/);
    expect(String(lines.event('ADDED', definition, second))).toMatch(/^\{"type":"ADDED".*"3".*\}\n$/);
  });
});

describe('on a connection', () => {
  test('an HTTP/1.0 client gets lines without chunk sizes', async () => {
    await using cluster = await startEmbeddedCluster({ name: 'wire' });
    using client = new RawClient(cluster);
    client.send(`GET ${COLLECTION}?watch=true HTTP/1.0\r\nhost: localhost\r\n\r\n`);
    await client.until('\r\n\r\n');
    await create(cluster, 'first');
    await create(cluster, 'zwölf');
    await client.until('"data":{"text":"zwölf"}}}\n');
    expect(client.text).not.toMatch(/transfer-encoding/i);
    const [, body = ''] = client.text.split('\r\n\r\n');
    expect(body.split('\n').slice(0, 2).map(typeOf)).toEqual(['ADDED', 'ADDED']);
  });

  test('a pipelined watch follows the complete response to the request before it', async () => {
    await using cluster = await startEmbeddedCluster({ name: 'wire' });
    await create(cluster, 'first');
    using client = new RawClient(cluster);
    const head = 'HTTP/1.1\r\nhost: localhost\r\n\r\n';
    const watch = `${COLLECTION}?watch=true&resourceVersion=1`;
    client.send(`GET /api/v1/namespaces ${head}GET ${watch} ${head}`);
    await client.until('"data":{"text":"first"}');
    await create(cluster, 'zwölf');
    await client.until('"data":{"text":"zwölf"}}}\n\r\n');
    const at = client.text.indexOf('HTTP/1.1 200', 1);
    expect(client.text.slice(0, at)).toContain('"kind":"NamespaceList"');
    const [, chunks = ''] = client.text.slice(at).split('\r\n\r\n');
    expect(chunkLines(chunks).map(typeOf)).toEqual(['ADDED', 'ADDED']);
  });
});

/** The lines of a body with one line per chunk; throws when the size of a chunk is wrong. */
function chunkLines(body: string): string[] {
  const lines: string[] = [];
  for (let rest = Buffer.from(body); rest.length > 0;) {
    const end = rest.indexOf('\r\n');
    const size = Number.parseInt(rest.toString('latin1', 0, end), 16);
    const next = end + 2 + size;
    expect(rest.toString('latin1', next, next + 2)).toBe('\r\n');
    lines.push(rest.toString('utf8', end + 2, next));
    rest = rest.subarray(next + 2);
  }
  return lines;
}

function typeOf(line: string): string {
  return (JSON.parse(line) as { type: string }).type; // a line of a watch
}

async function create(cluster: EmbeddedCluster, text: string): Promise<void> {
  const response = await fetch(`${cluster.url}${COLLECTION}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ metadata: { generateName: 'a-' }, data: { text } }),
  });
  expect(response.status).toBe(201);
}

/** Bytes out, bytes in. */
class RawClient implements Disposable {
  text = '';
  readonly #socket: Socket;
  readonly #waiting = new Set<() => void>();

  constructor({ url }: EmbeddedCluster) {
    const { hostname, port } = new URL(url);
    this.#socket = connect({ host: hostname, port: Number(port) });
    this.#socket.setEncoding('utf8');
    this.#socket.on('data', (piece: string) => {
      this.text += piece;
      for (const look of this.#waiting) look();
    });
  }

  send(text: string): void {
    this.#socket.write(text);
  }

  until(text: string): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!this.text.includes(text)) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}
