/**
 * Kills child processes when this process exits, also when it crashes. A small shell reads a pipe from this process; when the pipe closes, the
 * shell kills every registered process group, so a test runner that is killed leaves no API server behind.
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

  /** `directories` are removed when this process has exited. */
  constructor(directories: readonly string[] = []) {
    this.#shell = spawn('sh', ['-c', SCRIPT, 'guardian', ...directories], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    this.#shell.stdin?.on('error', () => undefined); // the shell has exited
    this.#shell.unref();
  }

  /** Starts a process as the leader of its own group, so that its children are killed with it. */
  spawn(command: string, args: readonly string[], options: SpawnOptions): ChildProcess {
    const child = spawn(command, args, { ...options, detached: true });
    this.#children.add(child);
    this.#send('add', child.pid);
    child.once('exit', () => {
      this.#children.delete(child);
      this.#send('remove', child.pid);
    });
    return child;
  }

  #send(op: 'add' | 'remove', pid: number | undefined): void {
    if (pid !== undefined && this.#shell.stdin?.writable) this.#shell.stdin.write(`${op} ${pid}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#children].map((child) => killGroup(child)));
    if (this.#shell.exitCode !== null) return;
    const exited = once(this.#shell, 'exit');
    this.#shell.ref();
    this.#shell.stdin?.end();
    await exited;
  }
}

/** Sends SIGKILL to a process that {@link Guardian.spawn} started and to its children; resolves when it has exited. */
export async function killGroup(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    return; // it has exited in the meantime
  }
  await exited;
}
