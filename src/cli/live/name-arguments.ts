/** Names of virtual objects on the command line. */

/** Why these are not all NAMESPACE/NAME; undefined: they are. */
export function nameProblem(names: readonly string[]): string | undefined {
  const wrong = names.find((name) => !/^[^/]+\/[^/]+$/u.test(name));
  return wrong === undefined ? undefined : `"${wrong}": write NAMESPACE/NAME, such as default/web`;
}
