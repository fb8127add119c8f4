/** Who somebody is when keys are made and changed: an administrator, an ordinary user, or a user of the host cluster. */

import type { AccessRequest } from '../../api/authorizer.ts';
import type { UserInfo } from '../../api/user.ts';
import { text } from '../../api/validation/metadata.ts';
import type { JsonObject } from '../../lib/json.ts';
import {
  ADMINISTRATORS,
  AUTH_DELEGATORS,
  isAdministrator,
  isOwnedBy,
  subjectOf,
  teamGroup,
} from '../identity.ts';
import type { KeyIndex } from '../types.ts';
import type { HostRights, ManagementAuthorizer } from './authorizer.ts';
import { isDelegated } from './delegated-user.ts';
import { KEYS, MANAGEMENT_GROUP } from './roles.ts';
import { ANY } from './scope-names.ts';

/** What a writer of keys may put into them. */
export interface Writer {
  isAdministrator(): Promise<boolean>;
  /** May it make and change keys of whom this `spec` of a key names? */
  mayActFor(spec: JsonObject): Promise<boolean>;
  /** May it add this group to a key? */
  mayGive(group: string): Promise<boolean>;
}

export interface WritersOptions {
  readonly authorizer: ManagementAuthorizer;
  readonly index: KeyIndex;
  readonly host?: HostRights | undefined;
}

/** Users and groups of the system: keys for them would be keys to whatever trusts these names. */
const SYSTEM = 'system:';
/** Groups that give rights here. */
const RESERVED: readonly string[] = [ADMINISTRATORS, AUTH_DELEGATORS];

const REQUEST: Omit<AccessRequest, 'verb' | 'group' | 'resource' | 'name'> = {
  version: 'v1',
  subresource: '',
  namespace: '',
  path: '',
  prefix: '',
};

export class Writers {
  readonly #options: WritersOptions;

  constructor(options: WritersOptions) {
    this.#options = options;
  }

  of(user: UserInfo): Writer {
    if (isDelegated(user)) return this.#delegated(user);
    return isAdministrator(user) ? ADMINISTRATOR : ordinary(user);
  }

  /** May the user delete what this entry of `ownerReferences` names? */
  async mayDelete(user: UserInfo, owner: JsonObject): Promise<boolean> {
    const [group, version] = text(owner, 'apiVersion').split('/');
    const isKey =
      group === MANAGEMENT_GROUP && version !== undefined && text(owner, 'kind') === 'OwnedAccessKey';
    const { isAllowed } = await this.#options.authorizer.decide(user, {
      ...REQUEST,
      verb: 'delete',
      group: version === undefined ? '' : (group ?? ''),
      // Which resource the kind has is not known here: only who may delete any may delete this.
      resource: isKey ? KEYS : ANY,
      name: text(owner, 'name'),
    });
    if (!isAllowed || isDelegated(user) || isAdministrator(user)) return isAllowed;
    return isKey && (await this.#owns(user, owner));
  }

  /** The key exists, and is the user's own. */
  async #owns(user: UserInfo, owner: JsonObject): Promise<boolean> {
    const { index } = this.#options;
    const uid = text(owner, 'uid');
    if (!index.byUid(uid)) await index.catchUp();
    const key = index.byUid(uid);
    if (!key || key.name !== text(owner, 'name')) return false;
    const isTeam = key.user.name.startsWith(teamGroup('')) && key.user.groups.includes(key.user.name);
    return key.user.name === user.name || (isTeam && user.groups.includes(key.user.name));
  }

  /** Making a key is being somebody: on the host that is the right to impersonate. */
  #delegated(user: UserInfo): Writer {
    const mayBe = async (resource: string, name: string): Promise<boolean> => {
      const request = { ...REQUEST, verb: 'impersonate', group: '', resource, name };
      return (await this.#options.host?.reviewAccess(user, request))?.isAllowed === true;
    };
    return {
      isAdministrator: () => mayBe('groups', ADMINISTRATORS),
      mayActFor: (spec) => {
        const isTeam = text(spec, 'team') !== '';
        return mayBe(isTeam ? 'groups' : 'users', subjectOf(spec).name);
      },
      mayGive: (group) => mayBe('groups', group),
    };
  }
}

const ADMINISTRATOR: Writer = {
  isAdministrator: () => Promise.resolve(true),
  mayActFor: () => Promise.resolve(true),
  mayGive: () => Promise.resolve(true),
};

function ordinary(user: UserInfo): Writer {
  return {
    isAdministrator: () => Promise.resolve(false),
    mayActFor: (spec) => Promise.resolve(isOwnedBy(spec, user) && !subjectOf(spec).name.startsWith(SYSTEM)),
    mayGive: (group) =>
      Promise.resolve(user.groups.includes(group) && !group.startsWith(SYSTEM) && !RESERVED.includes(group)),
  };
}
