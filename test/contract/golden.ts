/** Recorded responses of real kube-apiservers, by minor version; the cluster suite checks that they are still the same. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Step, Transcript } from './transcript.ts';

/** The version whose responses the embedded server sends. */
export const NEWEST = '1.37';
/** Of these, only the responses that differ from the newest version's are recorded. */
const OLDER = ['1.36'];

/** `version`: such as 1.36. */
export function golden(version = NEWEST): Transcript {
  if (version !== NEWEST && !OLDER.includes(version))
    throw new Error(
      `no responses of kube-apiserver ${version} are recorded; add it to ${import.meta.filename}`,
    );
  return version === NEWEST ? read(NEWEST) : { ...read(NEWEST), ...read(version) };
}

/** Records the newest version first: the others are compared with it. */
export function writeGolden(version: string, transcript: Transcript): void {
  const newest = version === NEWEST ? {} : read(NEWEST);
  const differing = Object.entries(transcript).filter(
    ([id, answer]) => !isDeepStrictEqual(answer, newest[id]),
  );
  writeFileSync(fileOf(version), `${JSON.stringify(Object.fromEntries(differing), null, 1)}\n`);
}

function read(version: string): Transcript {
  return JSON.parse(readFileSync(fileOf(version), 'utf8')) as Transcript; // our own file
}

function fileOf(version: string): string {
  return join(import.meta.dirname, '..', 'golden', `kube-apiserver-${version}.json`);
}

/** Such as 1.37. */
export function minorVersion({
  major,
  minor,
}: {
  readonly major?: unknown;
  readonly minor?: unknown;
}): string {
  return `${String(major)}.${String(minor)}`;
}

/** The expected response of the embedded server to a step. */
export function expectedOf(step: Step, recorded: Transcript): Partial<Transcript[string]> {
  const answer = recorded[step.id];
  if (!answer) throw new Error(`no answer of a kube-apiserver is recorded for the step ${step.id}`);
  return step.differs === undefined ? answer : { status: step.ourStatus ?? answer.status };
}
