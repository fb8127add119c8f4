/** What evaluations in this process may cost. Counted before the work is done, so that the limits hold whatever an expression and its inputs are. */

const NODES_PER_EVALUATION = 10_000;
const CHARACTERS_PER_EVALUATION = 64 * 1024;
const NODES_PER_RECONCILE = 100_000;
const CHARACTERS_PER_RECONCILE = 1024 * 1024;

/** Thrown where the sandbox has to evaluate. */
const DECLINED = Symbol('declined');

export function decline(): never {
  // oxlint-disable-next-line no-throw-literal -- an Error would cost a stack for each
  throw DECLINED;
}

/** Of one reconcile: of all patches of its object in both directions, and of the evaluation in progress. */
export class Budget {
  #nodes = NODES_PER_RECONCILE;
  #characters = CHARACTERS_PER_RECONCILE;
  /** What the evaluation in progress has to leave. */
  #nodesKept = 0;
  #charactersKept = 0;

  /** The next evaluation begins, with what it costs at least. */
  begin(nodes = 0, characters = 0): void {
    this.#nodesKept = Math.max(0, this.#nodes - NODES_PER_EVALUATION);
    this.#charactersKept = Math.max(0, this.#characters - CHARACTERS_PER_EVALUATION);
    this.spend(nodes);
    this.read(characters);
  }

  /** Members, elements and parts of the expression that are visited. */
  spend(nodes: number): void {
    this.#nodes -= nodes;
    if (!(this.#nodes >= this.#nodesKept)) decline();
  }

  /** Characters that are read or created. */
  read(characters: number): void {
    this.#characters -= characters;
    if (!(this.#characters >= this.#charactersKept)) decline();
  }
}
