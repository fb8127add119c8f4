/**
 * Ends child processes when this process ends, however it ends. A small shell holds a pipe to us; when the pipe closes it kills every
 * process group it was told about, so a crashed or killed test runner leaves no API server behind.
 */

import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';

const SCRIPT = `
pids=" "
while read -r op pid; do
  case $op in
    add) pids="$pids$pid " ;;
    remove) rest=" "; for p in $pids; do [ "$p" = "$pid" ] || rest="$rest$p "; done; pids=$rest ;;
  esac
done
for p in $pids; do kill -9 "-$p" 2>/dev/null; done
for d in "$@"; do rm -rf -- "$d"; done
`;

export class Guardian implements AsyncDisposable {
  readonly #shell: ChildProcess;
  readonly #children = new Set<ChildProcess>();

  /** `directories` are removed when this process has ended. */
  constructor(directories: readonly string[] = []) {
    this.#shell = spawn('sh', ['-c', SCRIPT, 'guardian', ...directories], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    this.#shell.stdin?.on('error', () => undefined); // the shell is gone: nothing left to tell it
    this.#shell.unref();
  }

  /** Starts a process as the leader of a group of its own, so that its children end with it. */
  spawn(command: string, args: readonly string[], options: SpawnOptions): ChildProcess {
    const child = spawn(command, args, { ...options, detached: true });
    this.#children.add(child);
    this.#tell('add', child.pid);
    child.once('exit', () => {
      this.#children.delete(child);
      this.#tell('remove', child.pid);
    });
    return child;
  }

  #tell(op: 'add' | 'remove', pid: number | undefined): void {
    if (pid !== undefined && this.#shell.stdin?.writable) this.#shell.stdin.write(`${op} ${pid}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#children].map((child) => killGroup(child)));
    if (this.#shell.exitCode !== null) return;
    const ended = once(this.#shell, 'exit');
    this.#shell.ref();
    this.#shell.stdin?.end();
    await ended;
  }
}

/** SIGKILL to a process that {@link Guardian.spawn} started and to its children; resolves when it is gone. */
export async function killGroup(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    return; // it ended in between
  }
  await ended;
}
