/** An object of JSON that `String` and `Number` throw on, since its members hide those of its prototype. */
export const NO_PRIMITIVE = { toString: 1, valueOf: 1 };
