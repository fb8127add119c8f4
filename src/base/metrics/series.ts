/** Metrics on a separate registry: counters, gauges and histograms. */

import { Counter, Gauge, Histogram, Registry } from './prom-client-parts.ts';

export type Labels = Readonly<Record<string, string>>;

/** Adds to a counter. */
export type Count = (amount?: number) => void;
export type Observe = (value: number) => void;

export interface CounterFamily {
  /** The series of these labels, at zero from now on. */
  of(labels: Labels): Count;
}

export interface GaugeFamily {
  /** The series of these labels, at zero unless it has a value. */
  of(labels: Labels): Observe;
  /** What the series measures no longer exists. */
  remove(labels: Labels): void;
}

export interface HistogramFamily {
  of(labels: Labels): Observe;
}

export interface Description {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
}

/**
 * Values by labels since the last scrape. prom-client finds a series by a hash of its labels at each call, and there are a dozen calls per object.
 */
class Pending {
  readonly #byLabels = new Map<string, { value: number; readonly store: Observe }>();

  /** `open` is called once for these labels, and returns what stores a value in prom-client. */
  of(labels: Labels, open: () => Observe): { value: number } {
    const key = JSON.stringify(labels);
    const series = this.#byLabels.get(key) ?? { value: 0, store: open() };
    this.#byLabels.set(key, series);
    return series;
  }

  delete(labels: Labels): void {
    this.#byLabels.delete(JSON.stringify(labels));
  }

  /** `next`: the value that a series has afterwards. */
  flush(next: (value: number) => number): void {
    for (const series of this.#byLabels.values()) {
      series.store(series.value);
      series.value = next(series.value);
    }
  }
}

/** Families of series; `text()` renders all of them. */
export class SeriesRegistry {
  readonly #registry = new Registry();

  /** `labels`: of every series. */
  constructor(labels: Labels = {}) {
    this.#registry.setDefaultLabels(labels);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Prometheus' text format. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  counter(description: Description): CounterFamily {
    const pending = new Pending();
    const collect = (): void => pending.flush(() => 0);
    const counter = new Counter({ ...this.#configuration(description), collect });
    return {
      of(labels) {
        const series = pending.of(labels, () => (amount) => counter.inc({ ...labels }, amount));
        return (amount = 1) => {
          series.value += amount;
        };
      },
    };
  }

  /** `refresh` is called before the series are rendered. */
  gauge(description: Description, refresh: () => void = () => undefined): GaugeFamily {
    const pending = new Pending();
    const collect = (): void => {
      refresh();
      pending.flush((value) => value);
    };
    const gauge = new Gauge({ ...this.#configuration(description), collect });
    return {
      of(labels) {
        // A reload requests the series again, which keeps its value.
        const series = pending.of(labels, () => (value) => gauge.set({ ...labels }, value));
        return (value) => {
          series.value = value;
        };
      },
      remove(labels) {
        pending.delete(labels);
        gauge.remove(labels);
      },
    };
  }

  /** A counter whose value is kept elsewhere and read at each scrape. */
  readCounter(description: Description, read: () => number): void {
    let known = 0;
    const counter: Counter = new Counter({
      ...this.#configuration(description),
      collect() {
        const value = read();
        counter.inc(Math.max(0, value - known));
        known = value;
      },
    });
  }

  histogram(description: Description & { readonly buckets: readonly number[] }): HistogramFamily {
    const histogram = new Histogram({
      ...this.#configuration(description),
      buckets: [...description.buckets],
    });
    const known = new Set<string>();
    return {
      of(labels) {
        const name = JSON.stringify(labels);
        if (!known.has(name)) histogram.zero(labels); // a known histogram keeps its counts
        known.add(name);
        const child = histogram.labels(labels);
        return (value) => child.observe(value);
      },
    };
  }

  #configuration({ name, help, labels = [] }: Description): {
    name: string;
    help: string;
    labelNames: string[];
    registers: Registry[];
  } {
    return { name, help, labelNames: [...labels], registers: [this.#registry] };
  }
}

/** The text of registries whose series differ in a label: each family has its heading once. */
export async function mergedText(registries: readonly SeriesRegistry[]): Promise<string> {
  const families = new Map<string, string[]>();
  for (const registry of registries) {
    for (const block of (await registry.text()).trimEnd().split('\n\n')) {
      const [help = '', type = '', ...series] = block.split('\n');
      const heading = `${help}\n${type}`;
      const known = families.get(heading);
      if (known === undefined) families.set(heading, series);
      else known.push(...series);
    }
  }
  const blocks = [...families].map(([heading, series]) => [heading, ...series, ''].join('\n'));
  return blocks.join('\n');
}
