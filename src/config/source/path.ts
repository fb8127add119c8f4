/** Paths in a configuration file: member names and list indexes from the root. */

export type ConfigPath = readonly (string | number)[];

const PLAIN_KEY = /^[A-Za-z_$][\w$-]*$/u;

/** `sync.toHost.endpoints.patches[0].path`, `sync.toHost.customResources["gadgets.example.com"]`; '' is the whole file. */
export function formatPath(path: ConfigPath): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (!PLAIN_KEY.test(step)) text += `[${JSON.stringify(step)}]`;
    else text += text === '' ? step : `.${step}`;
  }
  return text;
}
