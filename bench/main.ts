/** `npm run bench -- NAME [--record] [options]`: tables on standard output, JSON as in `results.ts`. Without a name, it lists the benchmarks. */

import { resultWriter, type WriteResult } from './results.ts';

interface Benchmark {
  readonly summary: string;
  load(): Promise<{ run(args: readonly string[], writeResult: WriteResult): Promise<void> }>;
}

const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  api: {
    summary: 'the key and token API compared to a kube-apiserver: GET, list, durable create, watch, memory',
    load: () => import('./api.ts'),
  },
  'api-scale': {
    summary: 'the key and token API with 100 000 keys: start, list, authentication, memory',
    load: () => import('./api-scale.ts'),
  },
  fleet: {
    summary: 'one process for 1, 10 and 100 virtual clusters, compared to as many daemons',
    load: () => import('./fleet.ts'),
  },
  hostile: {
    summary: 'what one hostile of ten members of a fleet costs the nine others',
    load: () => import('./hostile.ts'),
  },
  json: {
    summary: 'reading JSON with integers that no number holds, compared to JSON.parse',
    load: () => import('./json.ts'),
  },
  neighbours: {
    summary: "the effect of one tenant's hostile objects on the patches of others",
    load: () => import('./neighbours.ts'),
  },
  patch: {
    summary: 'patches of objects in memory, compared to goja, isolated-vm and a plain function',
    load: () => import('./patch.ts'),
  },
  references: {
    summary: 'Endpoints that reference Secrets: memory and requests per import, on real kube-apiservers',
    load: () => import('./references.ts'),
  },
  scale: {
    summary: 'start, restart, one update and memory with 1 000, 10 000 and 50 000 Endpoints',
    load: () => import('./scale.ts'),
  },
  slices: {
    summary: "what EndpointSlices of the clusters' own controllers cost the daemon: start and memory",
    load: () => import('./slices.ts'),
  },
  soak: {
    summary: 'steady updates for ten minutes: latency, CPU and memory over time',
    load: () => import('./soak.ts'),
  },
  sync: {
    summary:
      'the sync of Endpoints and EndpointSlices, with one replica and three, compared to a minimal loop',
    load: () => import('./sync/sync.ts'),
  },
};

const [name = '', ...options] = process.argv.slice(2);
const args = options.filter((option) => option !== '--record');
const benchmark = Object.hasOwn(BENCHMARKS, name) ? BENCHMARKS[name] : undefined;
if (benchmark === undefined) {
  const list = Object.entries(BENCHMARKS).map(([known, { summary }]) => `  ${known.padEnd(12)}${summary}\n`);
  process.stderr.write(`usage: npm run bench -- NAME\n${list.join('')}`);
  process.exitCode = name === '' ? 0 : 2;
} else {
  const loaded = await benchmark.load();
  await loaded.run(args, resultWriter(name, args.length < options.length));
}
