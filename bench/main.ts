/** `npm run bench -- NAME [options]`: tables on standard output, JSON in `bench/results/`. Without a name: what there is. */

interface Benchmark {
  readonly summary: string;
  load(): Promise<{ run(args: readonly string[]): Promise<void> }>;
}

const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  api: {
    summary: 'the key and token API beside a kube-apiserver: GET, list, durable create, watch, memory',
    load: () => import('./api.ts'),
  },
  patch: {
    summary: 'patches, object in, object out, beside goja, isolated-vm and a plain function',
    load: () => import('./patch.ts'),
  },
  references: {
    summary: 'Endpoints that name Secrets: memory and requests per import, on real kube-apiservers',
    load: () => import('./references.ts'),
  },
  sync: {
    summary: 'the whole sync on real kube-apiservers, beside a bare loop',
    load: () => import('./sync.ts'),
  },
};

const [name = '', ...args] = process.argv.slice(2);
const benchmark = Object.hasOwn(BENCHMARKS, name) ? BENCHMARKS[name] : undefined;
if (benchmark === undefined) {
  const list = Object.entries(BENCHMARKS).map(([known, { summary }]) => `  ${known.padEnd(12)}${summary}\n`);
  process.stderr.write(`Which benchmark? npm run bench -- NAME\n${list.join('')}`);
  process.exitCode = name === '' ? 0 : 2;
} else {
  const loaded = await benchmark.load();
  await loaded.run(args);
}
