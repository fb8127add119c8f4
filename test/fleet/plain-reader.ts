/** Reads the texts of vClusters in the thread of the test. */

import { decodeMemberConfig, encodeMemberConfig } from '../../src/fleet/config-transfer.ts';
import { memberConfig } from '../../src/fleet/member-config.ts';
import type { ValuesReader } from '../../src/fleet/values-reader.ts';
import { parseKubeconfig } from '../../src/kube/credentials/kubeconfig-file.ts';

export const plainReader: ValuesReader = {
  memberConfig: async (sources) => decodeMemberConfig(encodeMemberConfig(memberConfig(sources))),
  kubeconfig: async (_, text, source) => parseKubeconfig(text, source, '/'),
  [Symbol.asyncDispose]: async () => undefined,
};
