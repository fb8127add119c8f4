/** Requests whose responses must equal those of a kube-apiserver. The order matters: later steps depend on earlier ones. */

import { DELETE_STEPS } from './delete-steps.ts';
import { ENDPOINTS_STEPS } from './endpoints-steps.ts';
import { KIND_STEPS } from './kind-steps.ts';
import { LIST_STEPS } from './list-steps.ts';
import { PATCH_STEPS } from './patch-steps.ts';
import type { Step } from './transcript.ts';
import { WARNING_STEPS } from './warning-steps.ts';
import { WRITE_STEPS } from './write-steps.ts';

export const STEPS: readonly Step[] = [
  ...ENDPOINTS_STEPS,
  ...PATCH_STEPS,
  ...LIST_STEPS,
  ...DELETE_STEPS,
  ...WRITE_STEPS,
  ...WARNING_STEPS,
  // Its namespace is deleted last.
  ...KIND_STEPS,
];
