/** A replica of the real fleet as one process: it can crash at any request, be paused, be stopped, and be started again. */

import { messageOf } from '../../../src/base/errors.ts';
import { silentLogger } from '../../../src/base/logger.ts';
import type { Random } from '../../../src/base/random.ts';
import type { VirtualClock } from '../../../src/base/clock.ts';
import type { Config } from '../../../src/syncer/config/config.ts';
import { Fleet } from '../../../src/fleet/fleet.ts';
import type { ServerAccess } from '../../../src/kube/access.ts';
import type { Resource } from '../../../src/kube/object.ts';
import { failure } from '../../../src/kube/status-error.ts';
import { TransportError, type WatchClient } from '../../../src/kube/types.ts';
import { createSyncMetrics } from '../../../src/syncer/metrics/metrics.ts';
import { plainReader } from '../../fleet/plain-reader.ts';
import { SimEvaluator } from '../daemon/sim-evaluator.ts';
import type { Faults } from '../world/faults.ts';
import { ProcessClock } from '../world/process-clock.ts';
import { SimClient } from '../world/sim-client.ts';
import type { SimCluster } from '../world/sim-cluster.ts';
import type { SimMember } from './sim-member.ts';

export interface SimReplicaOptions {
  /** Of the process; each life has another one. */
  readonly name: string;
  readonly host: SimCluster;
  readonly members: readonly SimMember[];
  readonly config: Config;
  readonly clock: VirtualClock;
  readonly faults: Faults;
  readonly random: Random;
  /** A write of this identity was committed. `member`: into its virtual cluster; undefined: to the host. */
  readonly wrote: (identity: string, resource: Resource, member: SimMember | undefined) => void;
  readonly failed: (violation: string) => void;
  readonly trace: (line: string) => void;
}

interface Life {
  readonly process: ProcessClock;
  readonly fleet: Fleet;
  readonly identity: string;
}

const MANAGER = 'endpoint-syncer';
/** A kubelet kills a container that has not ended by then. */
const TERMINATION_MS = 30_000;
const COMPANION = { check: () => ({ isOk: true }), [Symbol.asyncDispose]: async () => undefined };

export class SimReplica {
  readonly #options: SimReplicaOptions;
  #life: Life | undefined;
  #lives = 0;
  #isStopping = false;
  /** The process ends with the write that makes this 0. */
  #writesLeft = Infinity;

  constructor(options: SimReplicaOptions) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#life !== undefined && !this.#life.process.isDead;
  }

  /** The name of its Lease; '' while it does not run. */
  get identity(): string {
    return this.isRunning ? (this.#life?.identity ?? '') : '';
  }

  /** Starts a new process; does nothing while one runs. */
  start(): void {
    if (this.isRunning) return;
    const { clock, config, failed, host, random, trace } = this.#options;
    const process = new ProcessClock(clock);
    const replicaId = `${this.#options.name}-${++this.#lives}`;
    const identity = `endpoint-syncer-replica-${replicaId}`;
    const client = this.#client(host, { process, identity });
    const fleet = new Fleet(
      {
        config,
        replicaId,
        namespaces: config.fleet.namespaces,
        host: { client, server: 'https://host', namespace: config.host.namespace, description: 'the host' },
        discoveryClient: client,
        leaseClient: client,
        sync: {
          connect: (access) => this.#connect(access, { process, identity }),
          createSandbox: async (options) =>
            new SimEvaluator(options, { process, faults: this.#options.faults }),
        },
        reader: plainReader,
        isDryRun: false,
        companion: COMPANION,
        metrics: createSyncMetrics(() => process.monotonicMs()),
        logger: silentLogger,
        clock: process,
        random,
        version: 'sim',
        signal: new AbortController().signal,
      },
      '',
    );
    this.#life = { process, fleet, identity };
    this.#writesLeft = Infinity;
    this.#isStopping = false;
    trace(`${identity} starts`);
    // A fleet that is stopped while it starts says so.
    fleet.start().catch((error: unknown) => {
      if (!this.#isStopping) failed(`${identity} cannot start: ${messageOf(error)}`);
    });
  }

  /** The process is gone; requests that left it reach the servers. */
  crash(): void {
    if (this.isRunning) this.#options.trace(`${this.identity} ends`);
    this.#life?.process.crash();
  }

  crashAfterWrites(count: number): void {
    this.#writesLeft = count;
  }

  /** SIGTERM, which a paused process gets when it resumes. */
  async stop(): Promise<void> {
    const life = this.#life;
    if (life === undefined || life.process.isDead) return;
    const killed = new Promise<void>((resolve) => this.#options.clock.schedule(TERMINATION_MS, resolve));
    await Promise.race([killed, new Promise<void>((resolve) => life.process.schedule(1, resolve))]);
    this.#isStopping = true;
    await Promise.race([killed, life.fleet.stop()]);
    life.process.crash();
  }

  pause(): void {
    this.#life?.process.pause();
  }

  resume(): void {
    this.#life?.process.resume();
  }

  #connect(access: ServerAccess, of: Pick<Life, 'process' | 'identity'>): WatchClient {
    const member = this.#options.members.find(({ server }) => server === access.server);
    if (member === undefined) throw new Error(`there is no server ${access.server}`);
    return authenticated(this.#client(member.cluster, of, member), access, member);
  }

  #client(
    cluster: SimCluster,
    { process, identity }: Pick<Life, 'process' | 'identity'>,
    member?: SimMember,
  ): SimClient {
    const { clock, faults, wrote } = this.#options;
    return new SimClient({
      cluster,
      clock,
      process,
      faults,
      manager: MANAGER,
      // What is left of a deleted vCluster is listed once: copies that an older list does not show would stay.
      isConsistent: member === undefined,
      committed: (resource) => {
        wrote(identity, resource, member);
        if (process !== this.#life?.process) return;
        this.#writesLeft -= 1;
        if (this.#writesLeft === 0) this.crash();
      },
    });
  }
}

/** As the HTTP client: rejected credentials are renewed, and the request is sent once more. */
function authenticated(client: WatchClient, access: ServerAccess, member: SimMember): WatchClient {
  const { credentials } = access;
  const isAccepted = async (): Promise<boolean> =>
    member.accepts((await credentials.headers())['authorization']);
  const sent = async <T>(send: () => Promise<T>): Promise<T> => {
    if (!(await isAccepted()) && !(credentials.invalidate() && (await isAccepted())))
      throw failure(401, 'Unauthorized', 'the token is not valid');
    try {
      return await send();
    } catch (error) {
      if (error instanceof TransportError) access.unreachable?.();
      throw error;
    }
  };
  return {
    cluster: client.cluster,
    get: (...request) => sent(() => client.get(...request)),
    list: (...request) => sent(() => client.list(...request)),
    watch: (...request) => sent(() => client.watch(...request)),
    create: (...request) => sent(() => client.create(...request)),
    update: (...request) => sent(() => client.update(...request)),
    patch: (...request) => sent(() => client.patch(...request)),
    delete: (...request) => sent(() => client.delete(...request)),
    request: (...request) => sent(() => client.request(...request)),
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  };
}
