/** Prints secrets: a file that standard output is redirected to is restricted to its owner before the secret is written. */

import { fchmodSync, fstatSync } from 'node:fs';
import { messageOf } from '../../base/errors.ts';

interface SecretOutput {
  readonly fd: number;
  write(text: string): unknown;
}

const GROUP_AND_OTHERS = 0o077;

export function printSecret(text: string, output: SecretOutput = process.stdout): void {
  restrictToOwner(output.fd);
  output.write(text);
}

/** Does nothing for a terminal or a pipe. */
function restrictToOwner(fd: number): void {
  const stat = fstatSync(fd);
  if (!stat.isFile() || (stat.mode & GROUP_AND_OTHERS) === 0) return;
  try {
    fchmodSync(fd, stat.mode & ~GROUP_AND_OTHERS);
  } catch (error) {
    const why = messageOf(error);
    process.stderr.write(
      `warning: other users can read the file with this secret, and its mode cannot be changed: ${why}\n`,
    );
  }
}
