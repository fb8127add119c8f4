/** `LOCAL_EVALUATION=false`: the daemons of the tests evaluate every expression in the sandbox. Below `endpointSyncer`, or its `defaults`. */

import type { JsonObject } from '../../src/base/json.ts';

export const SANDBOX_SETTINGS: JsonObject =
  process.env['LOCAL_EVALUATION'] === 'false' ? { sandbox: { localEvaluation: false } } : {};
