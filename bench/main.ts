/** `npm run bench -- NAME [--record] [options]`: tables on standard output, JSON as `results.ts` says. Without a name it lists the benchmarks. */

import { resultWriter, type WriteResult } from './results.ts';

interface Benchmark {
  readonly summary: string;
  load(): Promise<{ run(args: readonly string[], writeResult: WriteResult): Promise<void> }>;
}

const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  api: {
    summary: 'the key and token API beside a kube-apiserver: GET, list, durable create, watch, memory',
    load: () => import('./api.ts'),
  },
  'api-scale': {
    summary: 'the key and token API with 100 000 keys: start, list, authentication, memory',
    load: () => import('./api-scale.ts'),
  },
  neighbours: {
    summary: "what one tenant's hostile objects cost the patches of the others",
    load: () => import('./neighbours.ts'),
  },
  patch: {
    summary: 'patches, object in, object out, beside goja, isolated-vm and a plain function',
    load: () => import('./patch.ts'),
  },
  references: {
    summary: 'Endpoints that name Secrets: memory and requests per import, on real kube-apiservers',
    load: () => import('./references.ts'),
  },
  scale: {
    summary: 'start, restart, one update and memory with 1 000, 10 000 and 50 000 Endpoints',
    load: () => import('./scale.ts'),
  },
  soak: {
    summary: 'steady updates for ten minutes: latency, CPU and memory over time',
    load: () => import('./soak.ts'),
  },
  sync: {
    summary: 'the sync of Endpoints and EndpointSlices, one replica and three, beside a bare loop',
    load: () => import('./sync/sync.ts'),
  },
};

const [name = '', ...options] = process.argv.slice(2);
const args = options.filter((option) => option !== '--record');
const benchmark = Object.hasOwn(BENCHMARKS, name) ? BENCHMARKS[name] : undefined;
if (benchmark === undefined) {
  const list = Object.entries(BENCHMARKS).map(([known, { summary }]) => `  ${known.padEnd(12)}${summary}\n`);
  process.stderr.write(`Which benchmark? npm run bench -- NAME\n${list.join('')}`);
  process.exitCode = name === '' ? 0 : 2;
} else {
  const loaded = await benchmark.load();
  await loaded.run(args, resultWriter(name, args.length < options.length));
}
