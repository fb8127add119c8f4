/** The table of all kinds that a server serves. */

import type { ResourceDefinition } from './resource-definition.ts';

export type GroupVersion = Pick<ResourceDefinition, 'group' | 'version'>;

export class DefinitionTable {
  readonly all: readonly ResourceDefinition[];
  readonly #byPath = new Map<string, ResourceDefinition>();
  readonly #groupVersions = new Map<string, ResourceDefinition[]>();
  readonly #withoutKinds: readonly GroupVersion[];

  /** `withoutKinds` are served too, with nothing in them. */
  constructor(definitions: readonly ResourceDefinition[], withoutKinds: readonly GroupVersion[] = []) {
    this.all = definitions;
    this.#withoutKinds = withoutKinds;
    for (const definition of definitions) {
      const { group, version, plural } = definition;
      this.#byPath.set(`${group}/${version}/${plural}`, definition);
      const key = `${group}/${version}`;
      this.#groupVersions.set(key, [...(this.#groupVersions.get(key) ?? []), definition]);
    }
  }

  find(group: string, version: string, plural: string): ResourceDefinition | undefined {
    return this.#byPath.get(`${group}/${version}/${plural}`);
  }

  /** Kinds of one group version, by plural. */
  of(group: string, version: string): readonly ResourceDefinition[] {
    const found = this.#groupVersions.get(`${group}/${version}`) ?? [];
    return [...found].sort((a, b) => (a.plural < b.plural ? -1 : 1));
  }

  /** Group → its versions, in the order of their first definition. */
  get groups(): ReadonlyMap<string, readonly string[]> {
    const groups = new Map<string, string[]>();
    for (const { group, version } of [...this.all, ...this.#withoutKinds]) {
      const versions = groups.get(group) ?? [];
      if (!versions.includes(version)) versions.push(version);
      groups.set(group, versions);
    }
    return groups;
  }
}
