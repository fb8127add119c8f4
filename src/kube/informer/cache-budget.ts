/** Bounds what the caches of one caller hold together. Once they hold more, their informers read nothing more: the caller ends what uses them. */

import type { KubeObject } from '../object.ts';

export interface CacheLimits {
  readonly objectsMax: number;
  /** Approximate, as they are in memory. */
  readonly bytesMax: number;
}

export interface Excess {
  readonly of: 'objects' | 'bytes' | 'bytes of all members';
  readonly found: number;
  readonly max: number;
}

export class CacheBudget {
  #limits: CacheLimits;
  #objects = 0;
  #bytes = 0;
  #excess: Excess | undefined;
  readonly #exceeding = Promise.withResolvers<Excess>();
  readonly #reading = new AbortController();
  readonly #changed: (bytes: number) => void;
  readonly #shapes = new Shapes();

  /** `changed` gets how many bytes there are more, or less. */
  constructor(limits: CacheLimits, changed: (bytes: number) => void = () => undefined) {
    this.#limits = limits;
    this.#changed = changed;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Undefined as long as nothing was more than the limit. */
  get excess(): Excess | undefined {
    return this.#excess;
  }

  get exceeded(): Promise<Excess> {
    return this.#exceeding.promise;
  }

  get signal(): AbortSignal {
    return this.#reading.signal;
  }

  use(limits: CacheLimits): void {
    this.#limits = limits;
    this.#check();
  }

  share(): CacheShare {
    return new CacheShare(this.#shapes, (objects, bytes) => {
      this.#objects += objects;
      this.#bytes += bytes;
      this.#check();
      this.#changed(bytes);
    });
  }

  /** It keeps to its own limits, and its caller has to end nevertheless. */
  end(excess: Excess): void {
    this.#exceed(excess.of, excess.found, excess.max);
  }

  /** A list in progress has returned this many objects so far: it may never end, and return the same ones. */
  listed(objects: number): void {
    this.#exceed('objects', objects, this.#limits.objectsMax);
  }

  #check(): void {
    this.#exceed('objects', this.#objects, this.#limits.objectsMax);
    this.#exceed('bytes', this.#bytes, this.#limits.bytesMax);
  }

  #exceed(of: Excess['of'], found: number, max: number): void {
    if (found <= max || this.#excess !== undefined) return;
    this.#excess = { of, found, max };
    this.#reading.abort(new Error(`the caches hold more than ${max} ${of}`));
    this.#exceeding.resolve(this.#excess);
  }
}

/** Of V8, for a list of members that no object had before: a description of it, and of the step from the one before; and what {@link Shapes} has of it. */
const SHAPE_BYTES = 384;
/** So many cost nothing: more than all kinds of Kubernetes have. */
const FREE_SHAPES = 4096;
/** Then all are forgotten, and cost again where they are seen again. */
const SHAPES_MAX = 16_384;
/** V8 describes no shape of an object with more members. */
const SHAPE_MEMBERS_MAX = 128;

interface Shape {
  next: Map<string, Shape> | undefined;
}

/** The lists of members, and their beginnings, that the objects of a cache have had. */
class Shapes {
  /** Of those that cost anything, ever. */
  bytes = 0;
  #first: Shape = { next: undefined };
  #count = 0;
  #free = FREE_SHAPES;

  get first(): Shape {
    return this.#first;
  }

  /** `shape` with one member more. */
  with(shape: Shape, key: string): Shape {
    shape.next ??= new Map();
    const known = shape.next.get(key);
    if (known !== undefined) return known;
    const added: Shape = { next: undefined };
    shape.next.set(key, added);
    if (this.#free > 0) this.#free -= 1;
    else this.bytes += SHAPE_BYTES;
    this.#count += 1;
    if (this.#count >= SHAPES_MAX) [this.#first, this.#count] = [{ next: undefined }, 0];
    return added;
  }
}

/** Large objects are measured once. */
const LARGE_BYTES = 64 * 1024;

export class CacheShare {
  readonly #add: (objects: number, bytes: number) => void;
  readonly #shapes: Shapes;
  /** Of large objects, and of those with shapes that cost something: they would cost nothing the second time. */
  readonly #measured = new WeakMap<KubeObject, number>();
  #objects = 0;
  #bytes = 0;
  #isReleased = false;

  constructor(shapes: Shapes, add: (objects: number, bytes: number) => void) {
    this.#shapes = shapes;
    this.#add = add;
  }

  /** What is neither an object nor in a cache, such as the configuration of the caller. */
  hold(value: unknown): void {
    this.#change(0, sizeOf(value));
  }

  /** Undefined stands for no object. */
  replaced(before: KubeObject | undefined, after: KubeObject | undefined): void {
    if (this.#isReleased) return;
    const objects = Number(after !== undefined) - Number(before !== undefined);
    this.#change(objects, this.#sizeOf(after, this.#shapes) - this.#sizeOf(before));
  }

  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#add(-this.#objects, -this.#bytes);
  }

  #sizeOf(object: KubeObject | undefined, shapes?: Shapes): number {
    if (object === undefined) return 0;
    const known = this.#measured.get(object);
    if (known !== undefined) return known;
    const before = this.#shapes.bytes;
    const bytes = sizeOf(object, shapes);
    const added = this.#shapes.bytes - before;
    if (bytes > LARGE_BYTES || added > 0) this.#measured.set(object, bytes + added);
    return bytes + added;
  }

  #change(objects: number, bytes: number): void {
    this.#objects += objects;
    this.#bytes += bytes;
    this.#add(objects, bytes);
  }
}

/** Of V8: a header and the length of a string, an element of an array, the header of an object, a property with its place in the shape. */
const [STRING_BYTES, ELEMENT_BYTES, OBJECT_BYTES, PROPERTY_BYTES] = [16, 8, 32, 16];

/** Approximate bytes in memory, without shapes, which it adds to `shapes`. Not recursive: the value may be nested as deeply as its author wants. */
export function sizeOf(value: unknown, shapes?: Shapes): number {
  let bytes = 0;
  const left: unknown[] = [value];
  while (left.length > 0) {
    const one = left.pop();
    if (typeof one === 'string') bytes += STRING_BYTES + one.length;
    else if (Array.isArray(one)) {
      bytes += OBJECT_BYTES + ELEMENT_BYTES * one.length;
      for (const element of one) left.push(element);
    } else if (typeof one === 'object' && one !== null) {
      bytes += OBJECT_BYTES;
      const members = one as Readonly<Record<string, unknown>>; // raw JSON
      let [shape, count] = [shapes?.first, 0];
      for (const key in members) {
        const member = members[key];
        if (shape !== undefined && (count += 1) <= SHAPE_MEMBERS_MAX) shape = shapes?.with(shape, key);
        bytes += PROPERTY_BYTES + key.length;
        if (typeof member === 'string') bytes += STRING_BYTES + member.length;
        else left.push(member);
      }
    }
  }
  return bytes;
}
