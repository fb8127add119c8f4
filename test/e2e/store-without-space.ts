/** A process whose file size the parent limits. It prints the result of each write. */

import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { SqliteStore } from '../../src/apiserver/storage/sqlite/sqlite-store.ts';
import { StoreError } from '../../src/apiserver/storage/store.ts';

const [file = ''] = process.argv.slice(2);
const store = await SqliteStore.open({ file });
let number = 0;

/** Writes until a write fails; the error, and what readers still see. */
async function fill(): Promise<object> {
  for (;;) {
    const key = { resource: 'things', namespace: '', name: `n${number}` };
    const before = await store.revision();
    try {
      await store.create(key, { text: 'x'.repeat(5000) });
      number++;
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      return {
        code: error.code,
        message: error.message,
        written: number,
        isSeen: (await store.get(key)) !== undefined,
        isAdvanced: (await store.revision()) !== before,
      };
    }
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'fill') writeSync(1, `${JSON.stringify(await fill())}\n`);
  if (line === 'check') {
    const isWritable = await store.checkWritable().then(
      () => true,
      () => false,
    );
    writeSync(1, `${JSON.stringify({ isWritable })}\n`);
  }
  if (line === 'one') {
    const { revision } = await store.create({ resource: 'things', namespace: '', name: `n${number++}` }, {});
    writeSync(1, `${JSON.stringify({ revision, written: number })}\n`);
  }
}
