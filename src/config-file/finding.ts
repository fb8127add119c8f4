/** Paths in a configuration, the values at them, and findings about them, before a path is located in the text. */

import { type JsonObject, type JsonValue, isJsonObject, ownValue, valueAt } from '../base/json.ts';

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
  /** Members of which one is missing. It is not reported if an unknown key stands for one of them, or for a section of it. */
  readonly missing?: readonly ConfigPath[];
  /** The file that the finding is about, even if the other file has more of the path: the one below, or the configuration file. */
  readonly file?: 'base' | 'own';
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

/** The findings without those that follow from a misspelt key, which is an error where an error follows. */
export function withoutConsequences(findings: readonly Finding[]): readonly Finding[] {
  const meant = new Set(findings.flatMap((finding) => (finding.meant ? [formatPath(finding.meant)] : [])));
  const causes = ({ missing = [] }: Finding): string[] =>
    missing
      .flatMap((path) => path.map((_, depth) => formatPath(path.slice(0, depth + 1))))
      .filter((path) => meant.has(path));
  const effective = new Set(findings.flatMap(causes));
  const isCause = (finding: Finding): boolean =>
    finding.meant !== undefined && effective.has(formatPath(finding.meant));
  return findings
    .filter((finding) => causes(finding).length === 0)
    .map((finding) => (isCause(finding) ? { ...finding, severity: 'error' } : finding));
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

/** '' is the whole file. */
export function pathOf(dotted: string): ConfigPath {
  return dotted === '' ? [] : dotted.split('.');
}

// Single fields of a configuration that may be invalid elsewhere.

/** Typed access to the file's content. A value of another type counts as absent; the schema reports it. */
export class Fields {
  readonly #root: JsonObject;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  /** `dotted` has plain keys only. */
  value(dotted: string): JsonValue | undefined {
    return valueAt(this.#root, pathOf(dotted));
  }

  text(dotted: string, fallback = ''): string {
    const value = this.value(dotted);
    return typeof value === 'string' ? value : fallback;
  }

  isOn(dotted: string, fallback = false): boolean {
    const value = this.value(dotted);
    return typeof value === 'boolean' ? value : fallback;
  }

  object(dotted: string): JsonObject {
    const value = this.value(dotted);
    return isJsonObject(value) ? value : {};
  }

  /** '' is the whole file. */
  keys(section: string): string[] {
    return Object.keys(section === '' ? this.#root : this.object(section));
  }
}

export function textMember(object: JsonObject, key: string): string | undefined {
  const value = ownValue(object, key);
  return typeof value === 'string' ? value : undefined;
}

export function isSet(object: JsonObject, key: string): boolean {
  const value = ownValue(object, key);
  return value !== undefined && value !== null && value !== '';
}
