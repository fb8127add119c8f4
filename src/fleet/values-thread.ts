/** The thread that reads the texts of vClusters: it takes half a second to read the longest ones, in which the process has to renew its Lease. */

import { parentPort } from 'node:worker_threads';
import { messageOf } from '../base/errors.ts';
import { writeLongIntegers } from '../base/json.ts';
import { parseKubeconfig } from '../kube/credentials/kubeconfig-file.ts';
import { encodeMemberConfig } from './config-transfer.ts';
import { memberConfig } from './member-config.ts';
import type { ReadRequest, ReadResponse } from './values-reader.ts';

function respond(request: ReadRequest): ReadResponse {
  try {
    return { text: read(request) };
  } catch (error) {
    return { error: messageOf(error) };
  }
}

function read(request: ReadRequest): string {
  switch (request.kind) {
    case 'values':
      return encodeMemberConfig(memberConfig(request.sources));
    case 'kubeconfig':
      return JSON.stringify(parseKubeconfig(request.text, request.source, '/'));
  }
}

writeLongIntegers();
parentPort?.on('message', (request: ReadRequest) => parentPort?.postMessage(respond(request)));
