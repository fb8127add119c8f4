/** What evaluations in this process may cost. Counted before the work is done, so that the limits hold whatever an expression and its inputs are. */

const NODES_PER_EVALUATION = 10_000;
const CHARACTERS_PER_EVALUATION = 64 * 1024;
const NODES_PER_OBJECT = 100_000;
const CHARACTERS_PER_OBJECT = 1024 * 1024;

/** Thrown where the sandbox has to evaluate. */
const DECLINED = Symbol('declined');

export function decline(): never {
  // oxlint-disable-next-line no-throw-literal -- an Error would cost a stack for each
  throw DECLINED;
}

/** Of all patches of one object in one direction, and of the evaluation in progress. */
export class Budget {
  #nodes = 0;
  #characters = 0;
  #nodesLeft = NODES_PER_OBJECT;
  #charactersLeft = CHARACTERS_PER_OBJECT;

  /** The next evaluation begins. */
  begin(): void {
    this.#nodes = Math.min(NODES_PER_EVALUATION, this.#nodesLeft);
    this.#characters = Math.min(CHARACTERS_PER_EVALUATION, this.#charactersLeft);
  }

  /** Members, elements and parts of the expression that are visited. */
  spend(nodes: number): void {
    this.#nodesLeft -= nodes;
    this.#nodes -= nodes;
    if (!(this.#nodes >= 0)) decline();
  }

  /** Characters that are read or created. */
  read(characters: number): void {
    this.#charactersLeft -= characters;
    this.#characters -= characters;
    if (!(this.#characters >= 0)) decline();
  }
}
