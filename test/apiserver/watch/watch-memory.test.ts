/** What an open watch keeps in memory of the request that opened it. */

import { expect, test } from 'vitest';
import { garbageCollector } from '../../support/garbage.ts';
import type { AuditEvent } from '../../../src/apiserver/request/audit-event.ts';
import { accessKeyTable, GROUP } from '../test-kinds.ts';
import { startTestServer } from '../test-server.ts';

test('an open watch keeps neither its request nor its response, and is audited with its URL when it ends', async () => {
  const gone: WeakRef<object>[] = [];
  const audited: AuditEvent[] = [];
  await using running = await startTestServer({
    table: accessKeyTable(),
    audit: (event) => void audited.push(event),
    wrapListener: (serve) => (request, response) => {
      gone.push(new WeakRef(request), new WeakRef(response));
      serve(request, response);
    },
  });
  const collect = garbageCollector();
  const path = `/apis/${GROUP}/v1/ownedaccesskeys?watch=1`;
  const watch = await running.client.watch(path);
  await expect
    .poll(() => {
      collect();
      return gone.map((object) => object.deref());
    })
    .toEqual([undefined, undefined]);
  expect(audited).toEqual([]);
  await watch[Symbol.asyncDispose]();
  await expect.poll(() => audited).toMatchObject([{ verb: 'watch', requestURI: path }]);
});
