/** The effect of one tenant's hostile objects on others: latency and throughput of their patches, without and with these objects. */

import { HOSTILE, HOSTILE_EXPRESSIONS, Tenants } from '../test/attack/tenants.ts';
import { LIMITS, TestSandbox } from '../test/expressions/test-sandbox.ts';
import { thisMachine } from './machine.ts';
import type { WriteResult } from './results.ts';
import { median } from './statistics.ts';

const PROBE_MS = 5000;
const OTHER = { namespace: 'other', name: 'web' };
const NEIGHBOUR = { namespace: 'hostile', name: 'web' };

interface Row {
  readonly expression: string;
  readonly hostile: 'created once' | 'updated';
  readonly otherP50Ms: number;
  readonly otherMaxMs: number;
  readonly otherP50AloneMs: number;
  readonly otherMaxAloneMs: number;
  readonly sameNamespaceMaxMs: number;
  readonly newObjectMs: number;
  /** Updates of the other namespace in the time of the probe, compared with those without hostile objects. */
  readonly throughputRatio: number;
}

export async function run(_args: readonly string[], writeResult: WriteResult): Promise<void> {
  const machine = thisMachine();
  const rows: Row[] = [];
  for (const [what, expression] of Object.entries(HOSTILE_EXPRESSIONS)) {
    for (const hostile of ['created once', 'updated'] as const) {
      const row = await measure(what, expression, hostile);
      rows.push(row);
      process.stdout.write(`${describe(row)}\n`);
    }
  }
  writeResult({ machine, rows });
}

async function measure(what: string, expression: string, hostile: Row['hostile']): Promise<Row> {
  await using sandbox = await TestSandbox.open({
    limits: { ...LIMITS, expressionTimeoutMs: 100, memoBytes: 2 ** 20 },
  });
  using tenants = new Tenants(sandbox, sandbox.define(expression));
  await Promise.all([OTHER, NEIGHBOUR].map((object) => tenants.sync(object, () => 'first')));
  const alone = await tenants.probe(OTHER, after(PROBE_MS));
  tenants.attack({ isUpdated: hostile === 'updated' });
  const created = tenants.sync({ namespace: 'hostile', name: 'new' }, () => 'fine');
  const [others, neighbours, newObjectMs] = await Promise.all([
    tenants.probe(OTHER, after(PROBE_MS)),
    tenants.probe(NEIGHBOUR, after(PROBE_MS)),
    created,
  ]);
  return {
    expression: what,
    hostile,
    otherP50Ms: median(others),
    otherMaxMs: Math.max(...others),
    otherP50AloneMs: median(alone),
    otherMaxAloneMs: Math.max(...alone),
    sameNamespaceMaxMs: Math.max(...neighbours),
    newObjectMs,
    throughputRatio: others.length / alone.length,
  };
}

function after(ms: number): () => boolean {
  const endMs = performance.now() + ms;
  return () => performance.now() >= endMs;
}

function describe(row: Row): string {
  const ms = (value: number): string => `${value.toFixed(1)} ms`;
  return [
    `${row.expression}, ${HOSTILE} hostile objects ${row.hostile}:`,
    `  another namespace   p50 ${ms(row.otherP50Ms)} (alone ${ms(row.otherP50AloneMs)}), max ${ms(row.otherMaxMs)} (alone ${ms(row.otherMaxAloneMs)}), ` +
      `${(100 * row.throughputRatio).toFixed(0)} % of its updates`,
    `  the same namespace  max ${ms(row.sameNamespaceMaxMs)}; a new object ${ms(row.newObjectMs)}`,
  ].join('\n');
}
