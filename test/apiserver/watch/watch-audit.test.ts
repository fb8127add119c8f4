/** A watch in the audit log. */

import { expect, test } from 'vitest';
import type { AuditEvent } from '../../../src/apiserver/request/audit-event.ts';
import { accessKeyTable, GROUP } from '../test-kinds.ts';
import { startTestServer } from '../test-server.ts';

test('a watch is audited with its URL when it ends', async () => {
  const audited: AuditEvent[] = [];
  await using running = await startTestServer({
    table: accessKeyTable(),
    audit: (event) => void audited.push(event),
  });
  const path = `/apis/${GROUP}/v1/ownedaccesskeys?watch=1`;
  const watch = await running.client.watch(path);
  expect(audited).toEqual([]);
  await watch[Symbol.asyncDispose]();
  await expect.poll(() => audited).toMatchObject([{ verb: 'watch', requestURI: path }]);
});
