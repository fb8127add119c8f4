/** What a user may write into keys: as an administrator, as an ordinary user, or as a user of the host cluster. */

import type { AccessRequest } from '../../../apiserver/request/authorizer.ts';
import type { UserInfo } from '../../../apiserver/request/user.ts';
import { text } from '../../../apiserver/metadata.ts';
import type { JsonObject } from '../../../base/json.ts';
import { ADMINISTRATORS, AUTH_DELEGATORS, isAdministrator, isOwnedBy, subjectOf } from '../../identity.ts';
import type { HostRights } from '../authorizer.ts';
import { isDelegated } from '../delegated/delegated-user.ts';

export interface Writer {
  isAdministrator(): Promise<boolean>;
  /** Whether it may create and change keys of the subject of this `spec`. */
  mayActFor(spec: JsonObject): Promise<boolean>;
  /** Whether it may add this group to a key. */
  mayGive(group: string): Promise<boolean>;
}

/** Prefix of users and groups of Kubernetes itself, which clusters trust by name. */
const SYSTEM = 'system:';
/** Groups with rights in this API. */
const RESERVED: readonly string[] = [ADMINISTRATORS, AUTH_DELEGATORS];

const REQUEST: Omit<AccessRequest, 'verb' | 'group' | 'resource' | 'name'> = {
  version: 'v1',
  subresource: '',
  namespace: '',
  path: '',
  prefix: '',
};

export class Writers {
  readonly #host: HostRights | undefined;

  /** `host` authorizes users of the host cluster; absent: there are none. */
  constructor(host: HostRights | undefined) {
    this.#host = host;
  }

  of(user: UserInfo): Writer {
    if (isDelegated(user)) return this.#delegated(user);
    return isAdministrator(user) ? ADMINISTRATOR : ordinary(user);
  }

  /** Creating a key of a user means acting as that user: on the host, the right to impersonate. */
  #delegated(user: UserInfo): Writer {
    const mayBe = async (resource: string, name: string): Promise<boolean> => {
      const request = { ...REQUEST, verb: 'impersonate', group: '', resource, name };
      return (await this.#host?.reviewAccess(user, request))?.isAllowed === true;
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
