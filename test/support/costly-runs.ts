/** How often the costly properties run. `PROPERTY_RUNS=all` runs all of their cases, as `.ci/run` does; `npm test` runs a fifth. */
export function costlyRuns(all: number): number {
  return process.env['PROPERTY_RUNS'] === 'all' ? all : Math.ceil(all / 5);
}
