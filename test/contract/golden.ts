/** Recorded responses of a real kube-apiserver; the cluster suite checks that they are still the same. */

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Step, Transcript } from './transcript.ts';

/** The version that sent the recorded responses. */
export const GOLDEN_VERSION = 'v1.36.3';
const FILE = join(import.meta.dirname, '..', 'golden', `kube-apiserver-${GOLDEN_VERSION}.json`);

export function golden(): Transcript {
  if (!existsSync(FILE)) return {};
  return JSON.parse(readFileSync(FILE, 'utf8')) as Transcript; // our own file
}

export function writeGolden(transcript: Transcript): void {
  writeFileSync(FILE, `${JSON.stringify(transcript, null, 1)}\n`);
}

/** The expected response of the embedded server to a step. */
export function expectedOf(step: Step, recorded: Transcript): Partial<Transcript[string]> {
  const answer = recorded[step.id];
  if (!answer) throw new Error(`no answer of a kube-apiserver is recorded for the step ${step.id}`);
  return step.differs === undefined ? answer : { status: step.ourStatus ?? answer.status };
}
