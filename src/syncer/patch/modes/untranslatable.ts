/** A matched value cannot be translated by a reference or labels patch; the message is for the user. */
export class UntranslatableValue extends Error {
  override readonly name = 'UntranslatableValue';
}
