/** Lists that API servers write as null where they are empty, such as `ports` of an EndpointSlice: for patches they are empty lists. */

import type { Segment } from './path-syntax.ts';
import type { PatchContext } from './types.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts';
import { Budget } from '../../expressions/local/budget.ts';

interface Members {
  /** The lists of an object, with what their elements hold. */
  readonly lists: Readonly<Record<string, Members>>;
  readonly objects?: Readonly<Record<string, Members>>;
}

const LEAF: Members = { lists: {} };

/** Of Endpoints, EndpointSlices and Services, which share no member. */
const MEMBERS: Members = {
  lists: {
    subsets: { lists: { addresses: LEAF, notReadyAddresses: LEAF, ports: LEAF } },
    endpoints: {
      lists: { addresses: LEAF },
      objects: { hints: { lists: { forZones: LEAF, forNodes: LEAF } } },
    },
    ports: LEAF,
  },
  objects: {
    spec: {
      lists: {
        ports: LEAF,
        clusterIPs: LEAF,
        externalIPs: LEAF,
        ipFamilies: LEAF,
        loadBalancerSourceRanges: LEAF,
      },
    },
    status: {
      lists: { conditions: LEAF },
      objects: { loadBalancer: { lists: { ingress: { lists: { ports: LEAF } } } } },
    },
  },
};

/** The object itself if no list is null. */
export function withEmptyLists(object: JsonObject): JsonObject {
  return mayLackLists(object) ? filled(object, MEMBERS) : object;
}

/** Most objects have none that is null. Asked for each patched object, so with names that are known here: a fifteenth of the time of the tables. */
function mayLackLists({ subsets, endpoints, ports, spec, status }: JsonObject): boolean {
  if (subsets === null || endpoints === null || ports === null) return true;
  if (spec !== undefined || status !== undefined) return true;
  return (
    (Array.isArray(subsets) && subsets.some(lacksAddresses)) ||
    (Array.isArray(endpoints) && endpoints.some(lacksAddresses))
  );
}

function lacksAddresses(element: JsonValue): boolean {
  if (!isJsonObject(element)) return false;
  const { addresses, notReadyAddresses, ports, hints } = element;
  return addresses === null || notReadyAddresses === null || ports === null || hints !== undefined;
}

/** Objects whose lists are filled once they are read. */
export class FilledContext implements PatchContext {
  readonly objectNamespace: string;
  readonly budget: Budget;
  readonly #stored: PatchContext;
  #hostObject: JsonObject | null | undefined;
  #virtualObject: JsonObject | null | undefined;

  constructor(stored: PatchContext) {
    this.objectNamespace = stored.objectNamespace;
    this.budget = stored.budget ?? new Budget();
    this.#stored = stored;
  }

  get hostObject(): JsonObject | null {
    const { hostObject } = this.#stored;
    return (this.#hostObject ??= hostObject && withEmptyLists(hostObject));
  }

  get virtualObject(): JsonObject | null {
    const { virtualObject } = this.#stored;
    return (this.#virtualObject ??= virtualObject && withEmptyLists(virtualObject));
  }
}

/** The path leads to lists of this kind. */
export function isListPath(segments: readonly Segment[]): boolean {
  let members: Members | undefined = MEMBERS;
  let isList = false;
  for (const segment of segments) {
    if (segment.kind === 'key' && segment.index === undefined && !isList) {
      isList = members !== undefined && Object.hasOwn(members.lists, segment.key);
      members = isList ? members?.lists[segment.key] : members?.objects?.[segment.key];
    } else if (isList) isList = false;
    else return false;
  }
  return isList;
}

function filled(object: JsonObject, { lists, objects = {} }: Members): JsonObject {
  let copy = object;
  const change = (name: string, value: JsonValue): void => {
    if (copy === object) copy = { ...object };
    copy[name] = value;
  };
  for (const name in lists) {
    const value = object[name];
    if (value === null) change(name, []);
    if (!Array.isArray(value) || lists[name] === LEAF) continue;
    const below = lists[name] ?? LEAF;
    const elements = value.map((element) => (isJsonObject(element) ? filled(element, below) : element));
    if (elements.some((element, at) => element !== value[at])) change(name, elements);
  }
  for (const name in objects) {
    const value = object[name];
    if (!isJsonObject(value)) continue;
    const whole = filled(value, objects[name] ?? LEAF);
    if (whole !== value) change(name, whole);
  }
  return copy;
}
