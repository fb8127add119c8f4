/** A page of the documentation as test steps: files to write, and commands with the documented output. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..', '..');

export interface DocumentedCommand {
  /** As written after `$ `, continuation lines and here-documents included. */
  readonly command: string;
  readonly output: string;
  /** `background`: left running (the line ends with `&`); `interrupted`: ended by the `^C` that closes its output. */
  readonly kind: 'foreground' | 'background' | 'interrupted';
}

export interface DocumentedPage {
  /** Name → text: blocks whose language is followed by a file name. */
  readonly files: ReadonlyMap<string, string>;
  readonly commands: readonly DocumentedCommand[];
  /** Lines of `sh` blocks, which tests do not run. */
  readonly shell: readonly string[];
}

/** `path` is relative to the root of the repository; `replace` has texts that differ in the test, such as an address. */
export function readPage(path: string, replace: Readonly<Record<string, string>> = {}): DocumentedPage {
  const text = Object.entries(replace).reduce(
    (page, [from, to]) => page.replaceAll(from, to),
    readFileSync(join(ROOT, path), 'utf8'),
  );
  const files = new Map<string, string>();
  const commands: DocumentedCommand[] = [];
  const shell: string[] = [];
  for (const [, info = '', body = ''] of text.matchAll(/^```(\w+ ?[^\n]*)\n([^]*?)^```$/gmu)) {
    const [language = '', name] = info.split(' ');
    if (name !== undefined) files.set(name, body);
    else if (language === 'console') commands.push(...commandsIn(body));
    else if (language === 'sh') shell.push(...body.trimEnd().split('\n'));
  }
  return { files, commands, shell };
}

/** In a `console` block, `$ ` begins a command and what follows is its output. */
export function commandsIn(session: string): DocumentedCommand[] {
  return session
    .split(/^\$ /mu)
    .slice(1)
    .map((part) => {
      const lines = part.split('\n');
      const end = lastLineOfCommand(lines);
      const output = lines.slice(end + 1).join('\n');
      const command = lines.slice(0, end + 1).join('\n');
      if (/^\^C$/mu.test(output)) {
        return { command, output: output.replace(/^\^C\n/mu, ''), kind: 'interrupted' };
      }
      return { command, output, kind: command.trimEnd().endsWith('&') ? 'background' : 'foreground' };
    });
}

function lastLineOfCommand(lines: readonly string[]): number {
  const hereDocument = /<<\s*'?(\w+)'?/u.exec(lines[0] ?? '')?.[1];
  if (hereDocument !== undefined) return lines.indexOf(hereDocument);
  return lines.findIndex((line) => !line.endsWith('\\'));
}
