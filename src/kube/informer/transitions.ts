/** The state machine of a list-watch as data: the transition for each outcome of a list or a watch. See docs/list-watch.md. */

/** Current activity. */
export type Phase = 'listing' | 'watching';

/** How a list or a watch ended. */
export type Outcome =
  /** The complete list is in the cache. */
  | 'complete'
  /** The same, and the server has an older state than was known: it was restored from a backup. */
  | 'restored'
  /** The server ended the watch as announced. */
  | 'ended'
  /** The server ended the watch in less than a second: retrying immediately would be a loop. */
  | 'brief'
  /** The connection broke in the middle. */
  | 'dropped'
  /** Nothing was received for longer than the silence limit; the connection may be half open. */
  | 'silent'
  /** The response is not what the API specifies. */
  | 'malformed'
  /** 410: the version or the continue token is too old. */
  | 'expired'
  /** The server's versions went back: it was restored from a backup. */
  | 'rewound'
  /** The server was away so long that a restored one may have passed the last known version. */
  | 'interrupted'
  /** A page is larger than the limit of this program. */
  | 'oversized'
  /** No response. */
  | 'unreachable'
  /** 401. */
  | 'unauthorized'
  /** 403. */
  | 'forbidden'
  /** 429, or 503 with `Retry-After`. */
  | 'throttled'
  /** Any other 4xx: the resource does not exist or the request is not accepted. */
  | 'rejected'
  /** 5xx. */
  | 'failed'
  /** This program threw while it stored an event. */
  | 'defect';

export interface Transition {
  readonly next: Phase;
  /** Full jitter on an exponential delay, and never less than the server's `Retry-After`. */
  readonly wait: 'none' | 'back-off';
}

const RELIST: Transition = { next: 'listing', wait: 'back-off' };
const WATCH_AGAIN: Transition = { next: 'watching', wait: 'back-off' };

/** INVARIANT: every LIST but the first one is preceded by a wait; of failures, only `interrupted` has no wait, because the one before it had. */
export const TRANSITIONS: Readonly<Record<Phase, Readonly<Partial<Record<Outcome, Transition>>>>> = {
  listing: {
    complete: { next: 'watching', wait: 'none' },
    restored: { next: 'watching', wait: 'none' },
    malformed: RELIST,
    expired: RELIST,
    oversized: RELIST,
    unreachable: RELIST,
    unauthorized: RELIST,
    forbidden: RELIST,
    throttled: RELIST,
    rejected: RELIST,
    failed: RELIST,
    defect: RELIST,
  },
  watching: {
    ended: { next: 'watching', wait: 'none' },
    brief: WATCH_AGAIN,
    dropped: WATCH_AGAIN,
    silent: RELIST,
    malformed: RELIST,
    expired: RELIST,
    rewound: RELIST,
    interrupted: { next: 'listing', wait: 'none' },
    unreachable: RELIST,
    unauthorized: WATCH_AGAIN,
    forbidden: WATCH_AGAIN,
    throttled: WATCH_AGAIN,
    rejected: RELIST,
    failed: WATCH_AGAIN,
    defect: RELIST,
  },
};

/** Every (phase, outcome) that exists, for metrics that start at zero and for tests. */
export function allTransitions(): readonly (readonly [Phase, Outcome, Transition])[] {
  const rows: [Phase, Outcome, Transition][] = [];
  for (const phase of ['listing', 'watching'] as const) {
    for (const [outcome, transition] of Object.entries(TRANSITIONS[phase])) {
      rows.push([phase, outcome as Outcome, transition]); // keys of a Record<Outcome, …>
    }
  }
  return rows;
}
