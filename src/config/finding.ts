/** A problem at a path of the configuration, before the path is located in the text. */

import type { ConfigPath } from './source/path.ts';

export interface Finding {
  /** A member or a list entry, which need not exist in the file. */
  readonly path: ConfigPath;
  /** What the caret points at: the key, or the value. */
  readonly at: 'key' | 'value';
  /** Character inside the value's text. */
  readonly index?: number;
  readonly severity: 'error' | 'warning';
  readonly message: string;
  /** True for a finding in vCluster's own values file, even if the configuration file has this path too. */
  readonly isAboutVcluster?: boolean;
}

export function errorAtValue(path: ConfigPath, message: string, index?: number): Finding {
  return { path, at: 'value', severity: 'error', message, ...(index === undefined ? {} : { index }) };
}

export function errorAtKey(path: ConfigPath, message: string): Finding {
  return { path, at: 'key', severity: 'error', message };
}

export function warningAtKey(path: ConfigPath, message: string): Finding {
  return { path, at: 'key', severity: 'warning', message };
}

export function warningAtValue(path: ConfigPath, message: string): Finding {
  return { path, at: 'value', severity: 'warning', message };
}
