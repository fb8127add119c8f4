/** The child process: evaluates the messages of standard input in their isolates, and writes responses to standard output, one at a time, synchronously.
 * It holds no state that the daemon needs, and is killed if it does not respond. Started from source text: only type imports. */

import type * as IsolatedVm from 'isolated-vm';
import type { IsolateMessage, ProgramMessage, SetupMessage } from '../protocol.ts';
import type { Realm } from './realm.ts';

type Port<K extends keyof Realm> = IsolatedVm.Reference<Realm[K]>;

interface IsolateHandles {
  readonly isolate: IsolatedVm.Isolate;
  readonly context: IsolatedVm.Context;
  readonly define: Port<'define'>;
  readonly forget: Port<'forget'>;
  readonly load: Port<'load'>;
  readonly advance: Port<'advance'>;
  readonly collect: Port<'collect'>;
}

interface IsolateRecord {
  readonly message: IsolateMessage;
  readonly programs: Map<number, ProgramMessage>;
  /** Undefined: it is closed. */
  handles: IsolateHandles | undefined;
}

const { readSync, writeSync, write } = process.getBuiltinModule('node:fs');
const { createRequire } = process.getBuiltinModule('node:module');

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
/** The daemon never reads from this descriptor. */
const LIFELINE = 3;
const READ_BYTES = 256 * 1024;
const NEWLINE = 10;
const LIFELINE_BYTES = 16 * 1024 * 1024;
const FAST_SHARE = 0.5;
/** For calls that run no expression. */
const SETUP_TIMEOUT_MS = 5000;
/** Beyond these, the one that was not used for longest is closed, and opened again when it is needed, in about ten milliseconds. */
const OPEN_MAX = 8;
/** Of its heap limit. Where isolates share the process, one that is larger after its batch is closed, because the limit of the process is one for all. */
const RETAINED_SHARE = 0.25;
const MIB = 1024 * 1024;

/** Text that is passed into the isolate is outside of both heaps, so neither garbage collector accounts for it. */
const COLLECT_CHARS = 24 * 1024 * 1024;

class Stopwatch {
  readonly #startedMs = performance.now();
  readonly #used = process.threadCpuUsage();

  elapsedMs(): number {
    return performance.now() - this.#startedMs;
  }

  /** True if this process got its share of processor time within the limit, or after a multiple of the limit. */
  hadProcessorFor(limitMs: number, { processorShare, starvedFactor }: SetupMessage): boolean {
    const { user, system } = process.threadCpuUsage(this.#used);
    return (user + system) / 1000 >= limitMs * processorShare || this.elapsedMs() > limitMs * starvedFactor;
  }
}

let setup: SetupMessage | undefined;
let ivm: typeof IsolatedVm | undefined;
let crossedChars = 0;
/** By id, the one that was used last at the end. */
const isolates = new Map<number, IsolateRecord>();

holdLifeline();
try {
  for (const line of lines()) handle(line);
} catch (error) {
  writeSync(STDERR, `${error instanceof Error ? error.stack : 'failed'}\n`);
}
end();

/** A regular exit would block on the thread that holds the lifeline. */
function end(): never {
  process.kill(process.pid, 'SIGKILL');
  throw new Error('SIGKILL had no effect');
}

/** Ends the process when the daemon dies, even while the isolate is blocked. A separate thread blocks in a write that cannot finish: when the
 * daemon's end of the pipe closes, the write raises SIGPIPE, which ends the process. Node ignores SIGPIPE, until a listener is added and removed. */
function holdLifeline(): void {
  const listener = (): void => undefined;
  process.on('SIGPIPE', listener);
  process.removeListener('SIGPIPE', listener);
  write(LIFELINE, Buffer.alloc(LIFELINE_BYTES), end);
}

function* lines(): Generator<string> {
  const chunk = Buffer.allocUnsafe(READ_BYTES);
  let parts: Buffer[] = [];
  for (;;) {
    const count = readSync(STDIN, chunk, 0, chunk.length, null);
    if (count === 0) return;
    const read = chunk.subarray(0, count);
    let from = 0;
    for (let end = read.indexOf(NEWLINE); end !== -1; end = read.indexOf(NEWLINE, from)) {
      const last = read.subarray(from, end);
      const line = parts.length === 0 ? last : Buffer.concat([...parts, last]);
      parts = [];
      from = end + 1;
      yield line.toString();
    }
    if (from < count) parts.push(Buffer.from(read.subarray(from)));
  }
}

function send(text: string): void {
  crossedChars += text.length;
  const bytes = Buffer.from(`${text}\n`);
  for (let sent = 0; sent < bytes.length;) sent += writeSync(STDOUT, bytes, sent);
}

function handle(line: string): void {
  const body = line.slice(1);
  switch (line.charAt(0)) {
    case 'S':
      setup = JSON.parse(body) as SetupMessage;
      ivm = (createRequire(setup.addon)(setup.addon) as { ivm: typeof IsolatedVm }).ivm;
      for (const isolate of setup.isolates) open(add(isolate));
      send('H');
      return;
    case 'I':
      add(JSON.parse(body) as IsolateMessage);
      return;
    case 'E':
      close(isolates.get(Number(body)));
      isolates.delete(Number(body));
      return;
    case 'P': {
      const program = JSON.parse(body) as ProgramMessage;
      const record = isolates.get(program.isolate);
      record?.programs.set(program.id, program);
      if (record?.handles !== undefined) define(record.handles, program);
      return;
    }
    case 'D': {
      const [isolate, id] = JSON.parse(body) as [number, number];
      const record = isolates.get(isolate);
      record?.programs.delete(id);
      record?.handles?.forget.applySync(undefined, [id]);
      return;
    }
    case 'G':
      collect();
      return;
    case 'B':
    case 'C':
      run(line);
      crossedChars += line.length;
      if (crossedChars > COLLECT_CHARS) collect();
      return;
    default:
      throw new Error('unknown message');
  }
}

function collect(): void {
  crossedChars = 0;
  if (setup !== undefined) (Reflect.get(globalThis, setup.collectorName) as () => void)(); // the flag --expose-gc-as put it there
  for (const { handles } of isolates.values()) handles?.collect.applySync(undefined, []);
}

function run(line: string): void {
  const isCareful = line.charAt(0) === 'C';
  const batchAt = line.indexOf('[');
  const record = isolates.get(Number(line.slice(isCareful ? 2 : 1, batchAt)));
  if (setup === undefined || record === undefined) throw new Error('no setup');
  const { expressionTimeoutMs, turnMs } = record.message;
  const { isolate, load, advance } = used(record);
  const batch = line.slice(batchAt);
  const whole = new Stopwatch();
  let call = whole;
  // A slow match in a batch is only retried alone. A match that got too little processor time gets more time.
  const limit = isCareful ? expressionTimeoutMs : expressionTimeoutMs * FAST_SHARE;
  const timeout = isCareful ? limit * (1 + Number(line.charAt(1))) : limit;
  try {
    load.applySync(undefined, [batch], { timeout: SETUP_TIMEOUT_MS });
    for (;;) {
      call = new Stopwatch();
      const response = advance.applySync(undefined, [isCareful ? 1 : Infinity], { timeout });
      send(response);
      if (response.charAt(0) !== '+') {
        closeIfLarge(record, isolate);
        return;
      }
      if (whole.elapsedMs() > turnMs && whole.hadProcessorFor(turnMs, setup)) {
        send('L');
        return;
      }
    }
  } catch {
    // The realm catches errors of expressions, so this error comes from the isolate. The reason is read from its state, not from a message,
    // which an expression could forge.
    if (isolate.isDisposed) {
      send('M');
      end();
    }
    close(record);
    // Timers may fire slightly early.
    const isLate = call.elapsedMs() >= timeout * 0.95;
    send(isLate ? (call.hadProcessorFor(limit, setup) ? 'T' : 'S') : 'X');
    // After a timeout, the old one may have pending work.
    open(record);
  }
}

function add(message: IsolateMessage): IsolateRecord {
  const record: IsolateRecord = { message, programs: new Map(), handles: undefined };
  isolates.set(message.id, record);
  return record;
}

function used(record: IsolateRecord): IsolateHandles {
  const { id } = record.message;
  isolates.delete(id);
  isolates.set(id, record);
  return record.handles ?? open(record);
}

function open(record: IsolateRecord): IsolateHandles {
  const others = [...isolates.values()].filter(({ handles }) => handles !== undefined);
  if (others.length >= OPEN_MAX) close(others[0]);
  record.handles = openIsolate(record.message);
  for (const program of record.programs.values()) define(record.handles, program);
  return record.handles;
}

function close(record: IsolateRecord | undefined): void {
  const isolate = record?.handles?.isolate;
  if (record !== undefined) record.handles = undefined;
  if (isolate?.isDisposed === false) isolate.dispose();
}

function closeIfLarge(record: IsolateRecord, isolate: IsolatedVm.Isolate): void {
  if (isolates.size < 2) return;
  const { used_heap_size: heap, externally_allocated_size: external } = isolate.getHeapStatisticsSync();
  if (heap + external > record.message.heapMiB * MIB * RETAINED_SHARE) close(record);
}

function openIsolate({ heapMiB, settings }: IsolateMessage): IsolateHandles {
  if (setup === undefined || ivm === undefined) throw new Error('no setup');
  const isolate = new ivm.Isolate({ memoryLimit: heapMiB });
  const context = isolate.createContextSync();
  const modules = new Map<string, IsolatedVm.Module>();
  for (const [name, source] of Object.entries(setup.modules)) {
    modules.set(name, isolate.compileModuleSync(source, { filename: name }));
  }
  const moduleOf = (specifier: string): IsolatedVm.Module => {
    const module = modules.get(specifier.replace(/^\.\/|\.[jt]s$/g, ''));
    if (module === undefined) throw new Error(`the realm has no module ${specifier}`);
    return module;
  };
  const entry = moduleOf('realm');
  entry.instantiateSync(context, moduleOf);
  entry.evaluateSync({ timeout: SETUP_TIMEOUT_MS });
  const install = entry.namespace.getSync('installRealm', { reference: true });
  const realm = install.applySync(undefined, [JSON.stringify(settings), setup.collectorName], {
    result: { reference: true },
    timeout: SETUP_TIMEOUT_MS,
  }) as IsolatedVm.Reference<Realm>;
  const port = <K extends keyof Realm>(name: K): Port<K> =>
    realm.getSync(name, { reference: true }) as Port<K>;
  return {
    isolate,
    context,
    define: port('define'),
    forget: port('forget'),
    load: port('load'),
    advance: port('advance'),
    collect: port('collect'),
  };
}

function define(
  { isolate, context, define: defineIn }: IsolateHandles,
  { id, source }: ProgramMessage,
): void {
  const options = { timeout: SETUP_TIMEOUT_MS };
  try {
    const script = isolate.compileScriptSync(source, { filename: `program-${id}` });
    const program = script.runSync(context, { reference: true, ...options });
    defineIn.applySync(undefined, [id, program.derefInto(), ''], options);
    program.release();
    script.release();
  } catch (error) {
    if (isolate.isDisposed) throw error;
    const problem = error instanceof Error ? error.message : 'the program does not compile';
    defineIn.applySync(undefined, [id, undefined, problem], options);
  }
}
