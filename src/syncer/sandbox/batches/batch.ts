/** Requests that are sent to the child together, grouped by program into columns; the responses are split into requests again. A batch
 * tracks its progress, so that the remaining part can be sent again.
 */

import { readResponse, type ResponseColumn } from '../results/response-text.ts';
import { Group, type Job } from './group.ts';
import type { ProgramEntry } from '../program-entry.ts';
import type { GroupMessage } from '../process/protocol.ts';
import type { EvaluateError } from '../types.ts';

/** Fails a job that was not sent. */
export function failJob(job: Job, error: EvaluateError): void {
  const values = job.values.map(() => undefined);
  job.complete(values, new Map(values.map((_, index) => [index, error])));
}

/** The progress of a batch. */
export interface Position {
  readonly job: Job;
  /** Index of the match in the job. */
  readonly match: number;
  /** The job started in this batch, or in the part of it that was sent last. */
  readonly isFirstJob: boolean;
}

export class Batch {
  readonly #groups: Group[] = [];
  #groupAt = 0;
  /** Start of the part that was sent last. */
  #sentGroup = 0;
  #sentMatch = 0;
  matches = 0;
  #isCareful = false;
  /** `matchesLeft` when it was last sent to a new process, because earlier matches may have used the memory. */
  retriedFreshAt: number | undefined;
  /** How often it was sent again because the child had too little processor time. */
  starvations = 0;
  /** The rest of its response is ignored. */
  isSpoiled = false;

  add(job: Job): void {
    let group = this.#groups.find(({ entry }) => entry === job.entry);
    if (group === undefined) {
      group = new Group(job.entry);
      this.#groups.push(group);
    }
    group.add(job);
    this.matches += job.values.length;
  }

  /** One call per match, so that a failure is attributed to one match. Free for a single match. */
  get isCareful(): boolean {
    return this.#isCareful || this.matchesLeft === 1;
  }

  set isCareful(isCareful: boolean) {
    this.#isCareful = isCareful;
  }

  get jobs(): readonly Job[] {
    return this.#groups.flatMap(({ jobs }) => jobs);
  }

  get entries(): readonly ProgramEntry[] {
    return this.#groups.map(({ entry }) => entry);
  }

  get isFinished(): boolean {
    return this.#groupAt >= this.#groups.length;
  }

  get matchesLeft(): number {
    let left = 0;
    for (let i = this.#groupAt; i < this.#groups.length; i++) left += this.#groups[i]?.matchesLeft ?? 0;
    return left;
  }

  /** The remaining part as JSON. Throws a RangeError if a value is too deep or the text too long. */
  encode(): string {
    this.#sentGroup = this.#groupAt;
    this.#sentMatch = this.#groups[this.#groupAt]?.done.length ?? 0;
    this.isSpoiled = false;
    const messages: GroupMessage[] = [];
    for (let i = this.#groupAt; i < this.#groups.length; i++) {
      const group = this.#groups[i];
      if (group !== undefined) messages.push(group.toMessage());
    }
    return JSON.stringify(messages);
  }

  /** Adds the next results. `foreign`: not a valid response to the request. `spoiled`: a result made its list undecodable; the remaining
   * part has to be sent again.
   */
  receive(text: string): 'taken' | 'spoiled' | 'foreign' {
    const columns = readResponse(text);
    if (columns === undefined) return 'foreign';
    for (const column of columns) {
      const group = this.#groups[this.#groupAt];
      if (group === undefined) return 'foreign';
      const outcome = this.#receiveColumn(group, column);
      if (outcome !== 'taken') return outcome;
    }
    return 'taken';
  }

  /** The next match; undefined if all are finished. */
  position(): Position | undefined {
    const group = this.#groups[this.#groupAt];
    if (group === undefined) return undefined;
    const at = group.jobAt(group.done.length);
    const [job, start = 0] = [group.jobs[at], group.starts[at]];
    if (job === undefined) return undefined;
    const isFirstJob = this.#groupAt === this.#sentGroup && at === group.jobAt(this.#sentMatch);
    return { job, match: group.done.length - start, isFirstJob };
  }

  /** Fails the next match and the rest of its job. */
  failNext(error: EvaluateError): void {
    const group = this.#groups[this.#groupAt];
    const position = this.position();
    if (group === undefined || position === undefined) return;
    group.failNext(position.job.values.length - position.match, error);
    this.#advance(group);
  }

  /** Removes the jobs that have not begun and that `isWanted` selects. */
  extract(isWanted: (job: Job) => boolean): Job[] {
    const extracted: Job[] = [];
    for (let i = this.#groups.length - 1; i >= this.#groupAt; i--) {
      const group = this.#groups[i];
      if (group === undefined) continue;
      extracted.push(...group.extract(isWanted));
      if (group.matchesLeft > 0) continue;
      this.#groups.splice(i, 1);
      if (group.jobs.length > 0) group.complete();
    }
    return extracted;
  }

  /** Fails all remaining matches. */
  failAll(error: EvaluateError): void {
    while (!this.isFinished) this.failNext(error);
  }

  #receiveColumn(group: Group, column: ResponseColumn): 'taken' | 'spoiled' | 'foreign' {
    if (column.values === undefined) {
      group.entry.needsPlainResponse = true;
      return 'spoiled';
    }
    if (!group.take(column.values, column.undefinedAt, column.errors)) return 'foreign';
    this.#advance(group);
    return 'taken';
  }

  #advance(group: Group): void {
    if (group.matchesLeft > 0) return;
    this.#groupAt++;
    group.complete();
  }
}
