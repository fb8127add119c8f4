/** Small deliberate bugs, each of which the simulation must find. A snippet stands exactly once in its file. */

export interface Mutant {
  readonly name: string;
  /** Below `src/`. */
  readonly file: string;
  readonly snippet: string;
  readonly replacement: string;
  /** Operations of a history, where the usual number is too few. */
  readonly steps?: number;
  /** The histories of a fleet find it. */
  readonly isOfFleet?: boolean;
}

const DECIDE = 'syncer/reconcile/decide.ts';
const RECONCILER = 'syncer/reconcile/reconciler.ts';
const USER_DELETION = 'syncer/reconcile/user-deletion.ts';
const PAIR_UPDATE = 'syncer/reconcile/pair-update.ts';
const WRITER = 'syncer/reconcile/writer.ts';
const GUARDS = 'syncer/reconcile/guards.ts';
const LIST_WATCH = 'kube/informer/list-watch.ts';
const INFORMER = 'kube/informer/informer.ts';
const CACHE = 'kube/informer/object-cache.ts';
const QUEUE = 'kube/work-queue.ts';
const BOOKKEEPING = 'syncer/translate/bookkeeping.ts';
const ECHOES = 'syncer/translate/echoes.ts';
const MERGE_KEY = 'syncer/translate/merge-key.ts';
const LAST_SYNCED = 'syncer/translate/last-synced.ts';
const IMPORTER = 'syncer/references/importer.ts';
const DECIDE_REFERENCE = 'syncer/references/decide-reference.ts';
const REFUSALS = 'syncer/references/refusals.ts';
const LEASE = 'kube/lease.ts';
const SERVICES = 'syncer/kinds/services.ts';
const KIND_SYNC = 'syncer/reconcile/kind-sync.ts';

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'echoes: the record of a virtual object is believed',
    file: ECHOES,
    snippet: 'const known: Known = {',
    replacement:
      "const forged = { virtual: { ...input.virtual, metadata: { name: '' } }, host: input.virtual };\n" +
      '  if (isRecordEchoed && input.memory !== undefined && input.memory.agreed === undefined)\n' +
      '    input = { ...input, memory: { ...input.memory, agreed: forged } };\n' +
      '  const known: Known = {',
  },
  {
    name: 'echoes: no record proves what the rules in use made',
    file: ECHOES,
    snippet: 'return by === rules ||',
    replacement: 'return (by === rules && by === undefined) ||',
  },
  {
    name: 'observer: a Service of the host is joined',
    file: KIND_SYNC,
    snippet: 'if (original === undefined) return damaged.get(key) === wanted ? undefined : key;',
    replacement: 'if (original === undefined) return undefined;',
  },
  {
    name: 'observer: the copy of another Service is joined',
    file: KIND_SYNC,
    snippet: 'return isTranslated && namespace === original.namespace ? undefined : key;',
    replacement: 'return isTranslated ? undefined : undefined;',
  },
  {
    name: 'services: one without Endpoints is copied',
    file: SERVICES,
    snippet: "return hasSyncedEndpoints(virtual) ? undefined : 'no synced endpoints';",
    replacement:
      "return hasSyncedEndpoints(virtual) || virtual !== undefined ? undefined : 'no synced endpoints';",
  },
  {
    name: 'services: one with a selector is copied',
    file: SERVICES,
    snippet: "if (hasSelector(virtual)) return 'selects Pods';",
    replacement: 'hasSelector(virtual);',
  },
  {
    name: 'services: a selector is not explained',
    file: SERVICES,
    snippet: "reason === 'selects Pods' ? { type",
    replacement: "reason === 'no service' ? { type",
  },
  {
    name: 'services: their Endpoints do not decide about them',
    file: SERVICES,
    snippet: '[ENDPOINTS.plural]: (object) => [objectKey(object)],',
    replacement: '[ENDPOINTS.plural]: (object) => [objectKey(object)].slice(1),',
  },
  {
    name: 'services: node ports are allocated again',
    file: SERVICES,
    snippet: 'return nodePort ? { ...rest, nodePort } : rest;',
    replacement: 'return nodePort === 0 ? { ...rest, nodePort } : rest;',
  },
  {
    name: 'services: the cluster IP of the virtual cluster is written',
    file: SERVICES,
    snippet: "field === 'healthCheckNodePort' || (ALLOCATED.has(field) && !isVirtualHeadless);",
    replacement: "field === 'healthCheckNodePort' && !isVirtualHeadless;",
  },
  {
    name: 'services: a headless one is not created again',
    file: SERVICES,
    snippet: 'if (isHeadless(next) !== isHeadless(now)) return true;',
    replacement: '',
  },
  {
    name: 'services: the load-balancer status stays on the host',
    file: SERVICES,
    snippet: 'if (jsonEquals(asStored(from), asStored(to))) return undefined;',
    replacement: 'if (jsonEquals(asStored(from), asStored(to)) || host !== undefined) return undefined;',
  },
  {
    name: 'services: the selector of another client stays',
    file: SERVICES,
    snippet: "  'selector',\n",
    replacement: '',
  },
  {
    name: 'termination: what a copy that is being deleted holds flows back',
    file: 'syncer/reconcile/copy.ts',
    snippet: 'const isOneWay = isTerminating(pair.host) || isTerminating(pair.virtual);',
    replacement: 'const isOneWay = isTerminating(pair.virtual);',
  },
  {
    name: 'termination: the address of a Service that is being deleted is published',
    file: PAIR_UPDATE,
    snippet: 'kind.statusPatch(virtual, isTerminating(host) ? undefined : host);',
    replacement: 'kind.statusPatch(virtual, host);',
  },
  {
    name: 'termination: an import that is being deleted counts as live',
    file: IMPORTER,
    snippet: 'return isTerminating(actual)\n          ?',
    replacement: 'return isTerminating(actual) && actual.metadata.uid === undefined\n          ?',
  },
  {
    name: 'deletion: the virtual object goes whose copy is deleted with its owner',
    file: USER_DELETION,
    snippet: 'return uids.length === 0 ||',
    replacement: 'return uids.length < 99 ||',
  },
  {
    name: 'deletion: the virtual object goes whose copy is deleted with its namespace',
    file: USER_DELETION,
    snippet: 'return error.code !== 422;',
    replacement: 'return error.code !== 422 && name === namespace;',
  },
  {
    name: 'deletion: the virtual object of a deleted copy stays',
    file: RECONCILER,
    snippet: "if (sync.environment.config.onHostDelete === 'deleteVirtual' &&",
    replacement:
      "if (sync.environment.config.onHostDelete === 'recreate' && (state.deletions?.count ?? 0) > 99 &&",
  },
  {
    name: 'deletion: an object that has no copy yet is deleted',
    file: RECONCILER,
    snippet: "hasLostCopy(state.deletions, sync.nowMs(), virtual.metadata.uid ?? '');",
    replacement: 'deletionsOf(state.deletions, sync.nowMs()) >= 0;',
  },
  {
    name: 'deletion: the object that was created again is deleted',
    file: RECONCILER,
    snippet: "hasLostCopy(state.deletions, sync.nowMs(), virtual.metadata.uid ?? '');",
    replacement: 'deletionsOf(state.deletions, sync.nowMs()) > 0;',
    steps: 80,
  },
  {
    name: "deletion: what was in a copy's place counts as the copy",
    file: KIND_SYNC,
    snippet: "return owner.kind === 'ours' && keyOf(owner.virtual) === key ? (owner.uid ?? '') : undefined;",
    replacement: 'return owner.kind && this.virtual.get(key)?.metadata.uid;',
  },
  {
    name: 'decide: a selector does not gate',
    file: DECIDE,
    snippet: 'if (gate !== undefined && !(keepsCopy',
    replacement: 'if (gate !== undefined && ownsCopy === undefined && !(ownsCopy',
  },
  {
    name: 'decide: a foreign object is updated',
    file: DECIDE,
    snippet: 'if (seen.service !== undefined && isLeftByController(seen, kind))',
    replacement: 'if (isLeftByController(seen, kind))',
  },
  {
    name: 'decide: opting out is ignored',
    file: DECIDE,
    snippet: 'const isReleased = isOptedOut(seen.virtual) || (ownsCopy && isOptedOut(seen.host));',
    replacement: 'const isReleased = isOptedOut(seen.virtual);',
  },
  {
    name: 'observer: strays are not seen',
    file: RECONCILER,
    snippet: 'const copy = copyKey === hostKey ? undefined : host.get(copyKey);',
    replacement: 'const copy = copyKey === hostKey ? host.get("") : undefined;',
  },
  {
    name: 'reconciler: stand-ins stay',
    file: RECONCILER,
    snippet: 'await endStandIn(sync, standIn, seen.target);',
    replacement: 'continue;',
  },
  {
    name: 'reconciler: refusals are not reported',
    file: RECONCILER,
    snippet: '  sync.report(seen.virtual, warning(reason, note));\n',
    replacement: '  warning(reason, note);\n',
  },
  {
    name: 'update: the virtual side is written without the record',
    file: PAIR_UPDATE,
    snippet: 'const stored = merged.host && (await writers.host.update(merged.host, reason));',
    replacement:
      'const stored = merged.virtual === undefined ? merged.host && (await writers.host.update(merged.host, reason)) : undefined;',
  },
  {
    name: 'update: a stale cache of the virtual side is trusted',
    file: PAIR_UPDATE,
    snippet: 'if (await isVirtualBehind(sync, virtual, host)) return STALE;\n  const held = heldKeys(',
    replacement: 'const held = heldKeys(',
  },
  {
    name: 'writer: an update is not guarded',
    file: WRITER,
    snippet: 'client.update(resource, object, write)',
    replacement:
      'client.update(resource, { ...object, metadata: { ...object.metadata, resourceVersion: undefined as unknown as string } }, write)',
  },
  {
    name: 'writer: a deletion has no uid precondition',
    file: WRITER,
    snippet: 'client.delete(resource, key, { uid }, { isDryRun })',
    replacement: 'client.delete(resource, key, {} as { uid: string }, { isDryRun })',
  },
  {
    name: 'writer: a dry run stores',
    file: WRITER,
    snippet: 'const write = { fieldManager: FIELD_MANAGER, isDryRun };',
    replacement: 'const write = { fieldManager: FIELD_MANAGER, isDryRun: isDryRun && false };',
  },
  {
    name: 'contention: an overwritten copy is corrected without end',
    file: GUARDS,
    snippet: 'const waitMs = backoffDelayMs(level, BASE_MS, MAX_MS);',
    replacement: 'const waitMs = MAX_MS * 1000 + backoffDelayMs(level, BASE_MS, MAX_MS);',
  },
  {
    name: 'admission: what it made of a copy counts as written',
    file: PAIR_UPDATE,
    snippet: '{ result, isAltered: isAltered(sync, merged.host, stored) }',
    replacement: '{ result, isAltered: false && isAltered(sync, merged.host, stored) }',
  },
  {
    name: 'admission: what it changes is corrected without end',
    file: PAIR_UPDATE,
    snippet: 'if (state.isAltered(seen.host) && host !== undefined) return AUTOMATIC_OVERWRITES_MAX;',
    replacement: '',
  },
  {
    name: 'recreation: a deleted copy does not come back',
    file: GUARDS,
    snippet: 'return Math.max(0, dueMs - nowMs);',
    replacement: 'return Math.max(1e9, dueMs - nowMs);',
  },
  {
    name: 'list-watch: a list does not remove what is gone',
    file: INFORMER,
    snippet: 'this.#unlisted = new Set(this.#keys());',
    replacement: 'this.#unlisted = new Set();',
  },
  {
    name: 'list-watch: the watch begins after what has passed',
    file: LIST_WATCH,
    snippet: 'if (!isOlder(version, this.#version)) this.#version = version;',
    replacement: 'if (!isOlder(version, this.#version)) this.#version = String(Number(version) + 1);',
    steps: 80,
  },
  {
    name: 'list-watch: a restored server is resumed',
    file: LIST_WATCH,
    snippet: 'const GAP_MAX_MS = 5000;',
    replacement: 'const GAP_MAX_MS = 1e9;',
  },
  {
    name: 'list-watch: the list of a restored server does not replace what is newer',
    file: CACHE,
    snippet: 'if (isNewerThanList || (deletion',
    replacement:
      'if (isOlder(object.metadata.resourceVersion, previous?.metadata.resourceVersion) || (deletion',
  },
  {
    name: 'list-watch: the same version of a restored object counts as unchanged',
    file: INFORMER,
    snippet: 'this.publish(event && { ...event, mayBeRestored: this.#mayBeRestored });',
    replacement: 'this.publish(event);',
  },
  {
    name: 'deletion: a copy that a restored host lacks counts as deleted by a user',
    file: KIND_SYNC,
    snippet: 'if (!this.#isWorking || mayBeRestored === true) return false;',
    replacement: 'if (!this.#isWorking) return false;',
  },
  {
    name: 'informer: an older state replaces a newer one',
    file: CACHE,
    snippet: 'return order === undefined || order > 0;',
    replacement: 'return order === undefined || order !== 0;',
  },
  {
    name: 'informer: a deleted object comes back with a late event',
    file: CACHE,
    snippet: 'return isLate || (deletion.isOurs && deletionTimestamp === undefined);',
    replacement: 'return isLate && deletion.isOurs && deletionTimestamp === "";',
  },
  {
    name: 'work queue: a key that comes again while it is handled is lost',
    file: QUEUE,
    snippet: 'if (this.#again.delete(key)) this.add(key);',
    replacement: 'this.#again.delete(key);',
  },
  {
    name: 'ownership: the marker alone makes an object ours',
    file: BOOKKEEPING,
    snippet: "if (found.includes('contradicts')) return false;",
    replacement: '',
  },
  {
    name: 'ownership: a clone is a damaged copy',
    file: BOOKKEEPING,
    snippet: 'if (isCloned(known, translator) || isOfAnother(known, expected)) return false;',
    replacement: '',
  },
  {
    name: 'merge: the host wins',
    file: MERGE_KEY,
    snippet: 'return isDue || (virtual === entry?.virtual && hashOf(state.host) !== entry?.host);',
    replacement: 'return isDue || hashOf(state.host) !== entry?.host;',
  },
  {
    name: 'merge: a removal on the host is forgotten',
    file: MERGE_KEY,
    snippet: 'return isHostAhead(state, base) ? TAKE : PUSH;',
    replacement: 'return state.host !== undefined && isHostAhead(state, base) ? TAKE : PUSH;',
  },
  {
    name: 'merge: a removal on the virtual side is undone',
    file: MERGE_KEY,
    snippet: 'if (wasCopied || wasMadeByPatch) return PUSH;',
    replacement: 'if (entry.virtual !== undefined) return TAKE;',
  },
  {
    name: 'merge: an incoming value is not recorded',
    file: LAST_SYNCED,
    snippet: 'if (wanted.virtual !== before) {',
    replacement: 'if (wanted.virtual === undefined && wanted.virtual !== before) {',
  },
  {
    name: 'merge: what no longer translates flows back',
    file: MERGE_KEY,
    snippet: 'if (isTranslatedOtherwise(state, reversed)) return outcome(state, [virtual, forward], false);',
    replacement: 'isTranslatedOtherwise(state, reversed);',
  },
  {
    name: 'echoes: what another syncer copies back is a change of the user',
    file: ECHOES,
    snippet: 'const entries = lastEntries(base, evidence);',
    replacement: 'const entries = lastEntries(base, evidence).slice(3);',
  },
  {
    name: 'echoes: they are not taken out',
    file: 'syncer/translate/merge.ts',
    snippet: 'const echoes = echoedKeys(input, recorded, views);',
    replacement: 'const echoes = echoedKeys(input, recorded, views).slice(0, 0);',
  },
  {
    name: 'echoes: the merge does not leave them alone',
    file: 'syncer/translate/merge.ts',
    snippet: 'const { virtual: source, held } = own;',
    replacement: 'const { virtual: source } = own;\n  const held: typeof own.held = [];',
  },
  {
    name: 'echoes: only labels are looked at',
    file: ECHOES,
    snippet: 'const keys = view.keys.filter((key) => isPossible(key)',
    replacement: "const keys = view.keys.filter((key) => member === 'labels' && isPossible(key)",
  },
  {
    name: 'echoes: they are translated on the host',
    file: ECHOES,
    snippet: 'return isEnforced && !isOnNeither(entry) && isWritten(virtual) ? virtual : state.host;',
    replacement: 'return state.forward;',
  },
  {
    name: "echoes: the virtual side's own value counts as one",
    file: ECHOES,
    snippet: 'value === entry?.host && value !== entry?.virtual',
    replacement: 'value !== entry?.host && value === entry?.virtual',
  },
  {
    name: 'echoes: the virtual side gets the value of the host',
    file: ECHOES,
    snippet: 'const value = [agreed?.virtual, reversed]',
    replacement:
      'if (agreed !== undefined) return { value: agreed.host };\n  const value = [agreed?.virtual, reversed]',
  },
  {
    name: 'references: an unreferenced import stays',
    file: IMPORTER,
    snippet: 'for (const copy of surplusCopies(seen, decision)) {',
    replacement: 'for (const copy of surplusCopies(seen, decision).slice(0, isReferenced ? 9 : 0)) {',
  },
  {
    name: 'references: an unreferenced import into the virtual cluster stays',
    file: IMPORTER,
    snippet: 'if (!isReferenced && !changes.isDispensable(imported)) return STILL_IN_USE;',
    replacement: 'if (!isReferenced) return result;',
  },
  {
    name: 'references: an edited copy is not corrected',
    file: IMPORTER,
    snippet: 'if (state.isInStep(source, copy)) return this.#inStep(job, copy, state);',
    replacement: 'if (state.isSourceUnchanged(source)) return UNCHANGED;',
  },
  // The decision and the import check every rule alike, each as a defence of its own: a bug must be in a rule, or in the last look.
  {
    name: 'references: an object of a virtual cluster itself is imported',
    file: REFUSALS,
    snippet: "if (resource.group === '' && resource.kind === 'ConfigMap' && VCLUSTER_OBJECT.test(name)) {",
    replacement: "if (resource.group === '' && resource.kind === 'ConfigMap' && name === '') {",
  },
  {
    name: 'references: the whole object is not checked before it is copied',
    file: IMPORTER,
    snippet: 'return refusal === undefined ? full : undefined;',
    replacement: 'return full;',
  },
  {
    name: 'references: an object that is read instead of a name is not noticed',
    file: IMPORTER,
    snippet: 'cache.observeRead(existing)',
    replacement: 'cache.observeWrite(existing)',
  },
  {
    name: 'references: a refused virtual object is exported',
    file: DECIDE_REFERENCE,
    snippet: 'const refusal = refusalOfVirtual(object, kind.virtual);',
    replacement: 'const refusal = refusalOfVirtual({ metadata: object.metadata }, kind.virtual);',
  },
  {
    name: 'references: the contents of a Secret are not looked into',
    file: REFUSALS,
    snippet: "if (values.some(isKubeconfig)) return 'it holds a kubeconfig';",
    replacement: '',
  },
  {
    name: 'references: copies do not follow a changed name',
    file: 'syncer/references/reference-changes.ts',
    snippet: 'if (index.writtenBy(referrer, id) !== name) index.decideAgain(referrer);',
    replacement: 'if (index.writtenBy(referrer, id) === undefined) index.decideAgain(referrer);',
  },
  {
    name: 'leader election: writes are not checked',
    file: LEASE,
    snippet: 'if (!lock.isHeld) throw new TransportError(',
    replacement: "if (!lock.isHeld && lock.identity === '') throw new TransportError(",
  },
  {
    name: 'leader election: the holder counts from the answer, and twice as long',
    file: LEASE,
    snippet: 'this.#heldUntilMs = sentMs + renewDeadlineMs;',
    replacement: 'this.#heldUntilMs = clock.monotonicMs() + 0 * sentMs + 2 * renewDeadlineMs;',
  },
  {
    name: "leader election: another's Lease is taken while it is valid",
    file: LEASE,
    snippet: 'return seen.sinceMs + durationMs - clock.monotonicMs();',
    replacement: 'return seen.sinceMs + durationMs / 10 - clock.monotonicMs();',
  },
  {
    name: 'leader election: a Lease is written without its version',
    file: LEASE,
    snippet: ': await client.update(LEASES, { ...written, spec }, options);',
    replacement: ': await client.update(LEASES, { ...written, metadata: { ...lease }, spec }, options);',
  },
  {
    name: 'fleet: a replica writes after its Lease has expired',
    file: 'fleet/member-lock.ts',
    snippet: 'return this.#claim !== undefined && this.#claim.term === replicas.term && replicas.isLive;',
    replacement: 'return this.#claim !== undefined && replicas.term > 0;',
    isOfFleet: true,
  },
  {
    name: 'fleet: the Leases of a replica are taken over before its own has expired',
    file: 'fleet/replicas.ts',
    snippet: 'return this.#listedMs >= sinceMs + durationMs;',
    replacement: 'return this.#listedMs >= sinceMs + durationMs / 5;',
    isOfFleet: true,
  },
  {
    name: 'fleet: members are not placed again when a replica ends',
    file: 'fleet/fleet.ts',
    snippet: '    this.members.decideAll();\n',
    replacement: '',
    isOfFleet: true,
  },
  {
    name: 'fleet: the Lease of a deleted vCluster is not taken',
    file: 'fleet/removals.ts',
    snippet: 'await Promise.all(formers.map(({ lock }) => lock.tryAcquire()));',
    replacement: '',
    isOfFleet: true,
  },
  {
    name: 'fleet: changed values are not applied',
    file: 'fleet/member.ts',
    snippet: 'const reloading = live.length === 0 ? true :',
    replacement: 'const reloading = live.length < 9 ? true :',
    isOfFleet: true,
  },
];
