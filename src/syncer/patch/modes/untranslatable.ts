/** A matched value is not of a shape that a reference or labels patch can translate; the message is for the user. */
export class UntranslatableValue extends Error {
  override readonly name = 'UntranslatableValue';
}
