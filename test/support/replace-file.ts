/** Files that a running program reads. */

import { renameSync, writeFileSync } from 'node:fs';

/** Replaces a file as a whole: a program that reads it meanwhile has the text before or this one, and no half of it. */
export function replaceFile(path: string, text: string): void {
  const whole = `${path}.new`;
  writeFileSync(whole, text);
  renameSync(whole, path);
}
