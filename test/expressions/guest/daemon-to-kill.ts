/** A process with a sandbox, to be killed by a test: prints the process ids of its children once they are idle or wedged, as requested. */

import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import { compileExpression } from '../../../src/expressions/front-end/compile-expression.ts';
import { createSandbox } from '../../../src/expressions/sandbox.ts';

const expressions = ['value + 1', '[].indexOf.call({ length: 2 ** 53 - 1 }, value)'];
const programs = expressions.flatMap((expression, id) => {
  const compiled = compileExpression(expression, id);
  return compiled.ok ? [compiled.program] : [];
});
const sandbox = await createSandbox({
  programs,
  vcluster: { name: 'vc', namespace: 'ns', config: {} },
  // Longer than the test, so that only the end of the daemon ends the child.
  limits: { expressionTimeoutMs: 60_000, batchTimeoutMs: 60_000, memoryBytes: 2 ** 30, memoBytes: 0 },
  clock: systemClock,
  logger: silentLogger,
});
const context = { hostObject: null, virtualObject: null };
const request = (program: number): Parameters<typeof sandbox.evaluate>[0] => ({
  program,
  object: { namespace: 'ns', name: 'web' },
  context,
  values: [1],
  paths: undefined,
});
await sandbox.evaluate(request(0));
if (process.argv[2] === 'wedged') void sandbox.evaluate(request(1));
// Written after the child has begun.
systemClock.schedule(50, () => process.stdout.write(JSON.stringify(sandbox.pids)));
