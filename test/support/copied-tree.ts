/** A copy of the sources that is changed by hand, and what follows from the change: how much a new kind, mode or field of the configuration touches. */

import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');
const COPIED = ['src', 'scripts', 'config', 'charts', 'docs/reference.md', 'package.json', 'tsconfig.json'];

/** File, a text in it, and what stands in its place; `$&` is the text. */
export type HandEdit = readonly [file: string, text: string, other: string];

export class CopiedTree implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'endpoint-syncer-copy-'));

  /** Copies, edits, and generates what is generated. Throws if a text is missing. */
  constructor(edits: readonly HandEdit[], added: Readonly<Record<string, string>> = {}) {
    for (const name of COPIED) cpSync(join(ROOT, name), join(this.#folder, name), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(this.#folder, 'node_modules'));
    for (const [file, text] of Object.entries(added)) this.write(file, text);
    for (const [file, text, other] of edits) {
      const before = this.read(file);
      if (!before.includes(text)) throw new Error(`${file} has no such line: ${text}`);
      this.write(file, before.replace(text, other));
    }
    execFileSync('npm', ['run', '--silent', 'schema', '--', '--write'], {
      cwd: this.#folder,
      stdio: 'inherit',
    });
  }

  read(file: string): string {
    return readFileSync(join(this.#folder, file), 'utf8');
  }

  write(file: string, text: string): void {
    writeFileSync(join(this.#folder, file), text);
  }

  /** Files that differ from those of the tree, or that it does not have, in order. */
  changed(): readonly string[] {
    const pattern = ['{src,config,charts}/**/*.*', 'scripts/*.ts', 'docs/reference.md'];
    return globSync(pattern, { cwd: this.#folder })
      .filter((name) => {
        const before = join(ROOT, name);
        return !existsSync(before) || this.read(name) !== readFileSync(before, 'utf8');
      })
      .toSorted();
  }

  /** What the compiler says of these files and those that they import: '' for nothing. */
  typeErrors(of: { readonly include: readonly string[]; readonly files?: readonly string[] }): string {
    this.write('tsconfig.copy.json', JSON.stringify({ extends: './tsconfig.json', ...of }));
    const args = ['--noEmit', '-p', 'tsconfig.copy.json'];
    const tsc = join(ROOT, 'node_modules/.bin/tsc');
    const { status, stdout } = spawnSync(tsc, args, { cwd: this.#folder, encoding: 'utf8' });
    return status === 0 ? '' : `${stdout}exit ${status}`;
  }

  /** The JSON that a program of the tree prints. */
  run(file: string): unknown {
    const args = ['--no-warnings', '--no-node-snapshot', file];
    return JSON.parse(execFileSync(process.execPath, args, { cwd: this.#folder, encoding: 'utf8' }));
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true });
  }
}
