/**
 * The Pod of a vCluster, without a kubelet: a network namespace that is connected to the one of the host's API server, and processes in it with
 * the volumes of the StatefulSet at their paths.
 */

import { execFileSync, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Guardian } from '../support/guardian.ts';

/** The name of every vCluster: members of a fleet differ in their namespaces only. */
export const VCLUSTER = 'my-vcluster';

export const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Of the StatefulSet, and of the sidecar. main.ts creates their mount points. */
export const VOLUMES = [
  '/data',
  '/binaries',
  '/pki',
  '/var/lib/vcluster',
  ACCOUNT,
  '/etc/endpoint-syncer',
  '/etc/vcluster',
];

/** A namespace of the host for one vCluster, and the first three bytes of the addresses of its Pod and its Service. */
export interface Place {
  readonly namespace: string;
  readonly subnet: string;
}

export const TEAM_A: Place = { namespace: 'team-a', subnet: '10.244.1' };
export const TEAM_B: Place = { namespace: 'team-b', subnet: '10.244.2' };

/** Starts processes in the Pod, and ends them. */
export class Pod extends Guardian {
  readonly ip: string;
  readonly directory: string;
  readonly #namespace: string;
  readonly #service: Server;

  constructor({ namespace, subnet }: Place) {
    const directory = mkdtempSync(join(tmpdir(), `endpoint-syncer-vcluster-${namespace}-`));
    super([directory]);
    this.directory = directory;
    this.ip = `${subnet}.2`;
    this.#namespace = namespace;
    for (const path of VOLUMES) mkdirSync(this.path(path), { recursive: true });
    const service = `${VCLUSTER} ${VCLUSTER}.${namespace} ${VCLUSTER}.${namespace}.svc`;
    const etcd = `${VCLUSTER}-etcd ${VCLUSTER}-etcd-headless ${VCLUSTER}-etcd-0.${VCLUSTER}-etcd-headless.${namespace}`;
    const own = `${this.ip} ${VCLUSTER}-0 ${service}\n127.0.0.1 ${etcd}\n`;
    writeFileSync(join(directory, 'hosts'), own + readFileSync('/etc/hosts', 'utf8'));
    appendFileSync('/etc/hosts', `${subnet}.1 ${VCLUSTER}.${namespace}\n`);
    connectNetwork(namespace, subnet);
    this.#service = forward({ address: `${subnet}.1`, port: 443 }, { address: this.ip, port: 8443 });
  }

  /** Where this process finds a path of the Pod. */
  path(path: string): string {
    return join(this.directory, path);
  }

  override spawn(command: string, args: readonly string[], options: SpawnOptions): ChildProcess {
    const script = [join(import.meta.dirname, 'pod.sh'), this.directory, VOLUMES.join(' ')];
    const inPod = ['netns', 'exec', this.#namespace, ...script, command, ...args];
    return super.spawn('ip', inPod, options);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    this.#service.close();
    ip(`link delete ${this.#namespace}`);
    ip(`netns delete ${this.#namespace}`);
  }
}

function connectNetwork(namespace: string, subnet: string): void {
  ip(`netns add ${namespace}`);
  ip(`link add ${namespace} type veth peer name eth0 netns ${namespace}`);
  ip(`addr add ${subnet}.1/24 dev ${namespace}`);
  ip(`link set ${namespace} up`);
  ip(`-n ${namespace} link set lo up`);
  ip(`-n ${namespace} addr add ${subnet}.2/24 dev eth0`);
  ip(`-n ${namespace} link set eth0 up`);
  ip(`-n ${namespace} route add default via ${subnet}.1`);
}

function ip(args: string): void {
  execFileSync('ip', args.split(' '));
}

interface Port {
  readonly address: string;
  readonly port: number;
}

/** As kube-proxy does for a Service. */
function forward(from: Port, to: Port): Server {
  const server = createServer((client) => {
    const pod = connect(to.port, to.address);
    const close = (socket: Socket) => () => void socket.destroy();
    client.on('error', close(pod)).on('close', close(pod)).pipe(pod);
    pod.on('error', close(client)).on('close', close(client)).pipe(client);
  });
  return server.listen(from.port, from.address);
}
