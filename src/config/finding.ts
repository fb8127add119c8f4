/** A problem at a path of the configuration, before the path is located in the text, and what such a path is. */

export interface Finding {
  /** A member or a list entry, which need not exist in the file. */
  readonly path: ConfigPath;
  /** What the caret points at: the key, or the value. */
  readonly at: 'key' | 'value';
  /** Character inside the value's text. */
  readonly index?: number;
  readonly severity: 'error' | 'warning';
  readonly message: string;
  /** The member that an unknown key most likely stands for. */
  readonly meant?: ConfigPath;
  /** Members of which one is missing. It is not reported if an unknown key stands for one of them. */
  readonly missing?: readonly ConfigPath[];
  /** The file that the finding is about, even if the other file has more of the path: vCluster's own values, or the configuration file. */
  readonly file?: 'vcluster' | 'own';
}

export function errorAtValue(path: ConfigPath, message: string, index?: number): Finding {
  return { path, at: 'value', severity: 'error', message, ...(index === undefined ? {} : { index }) };
}

export function errorAtKey(path: ConfigPath, message: string): Finding {
  return { path, at: 'key', severity: 'error', message };
}

export function missingMember(path: ConfigPath, message: string): Finding {
  return { ...errorAtKey(path, message), missing: [path] };
}

/** The findings without those that follow from a misspelt key. */
export function withoutConsequences(findings: readonly Finding[]): readonly Finding[] {
  const meant = new Set(findings.flatMap((finding) => (finding.meant ? [formatPath(finding.meant)] : [])));
  return findings.filter(({ missing = [] }) => !missing.some((path) => meant.has(formatPath(path))));
}

export function warningAtKey(path: ConfigPath, message: string): Finding {
  return { path, at: 'key', severity: 'warning', message };
}

export function warningAtValue(path: ConfigPath, message: string, index?: number): Finding {
  return { ...errorAtValue(path, message, index), severity: 'warning' };
}

// Paths in a configuration file: member names and list indexes from the root.

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
