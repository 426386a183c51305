/**
 * From the paths that libfuse asks by (byte strings) to the node ids that a handler knows, by looking up one name after the other, each
 * time: the lower may have changed. State: the nodes that the handler counts as looked up, once each, for as long as
 * they are open or were used lately; and the files that were removed while open.
 */
import { ENOENT } from '../../sys/errno.ts';
import { OUT_HEADER_SIZE, ROOT_ID } from '../abi.ts';
import type { Handler } from '../handler.ts';
import { Reply } from '../reply.ts';

/** Nodes to remember that are not open: a forgotten one is found again by its path. */
const REMEMBERED = 4096;
/** libfuse's name for a file that is removed while it is open: its own node's number, and a counter. */
const HIDDEN = /^\.fuse_hidden[0-9a-f]{16}$/;
const TWO_32 = 2 ** 32;

/** The id at the beginning of a `struct fuse_entry_out`; 0: there is no such file. */
export function entryId(reply: Reply): number {
  const at = OUT_HEADER_SIZE;
  return reply.bytes.readUInt32LE(at) + reply.bytes.readUInt32LE(at + 4) * TWO_32;
}

export interface Place {
  /** A node id. */
  parent: number;
  /** Byte string. */
  name: string;
}

export class Paths {
  private readonly handler: Handler;
  private readonly reply = new Reply();
  /** Looked up and not forgotten, the one that was used last at the end. */
  private readonly known = new Set<number>();
  /** How often each node is open. */
  private readonly opens = new Map<number, number>();
  /** By libfuse's name for them: files that have lost their name in the view. */
  private readonly removed = new Map<string, number>();

  constructor(handler: Handler) {
    this.handler = handler;
  }

  /** The node of a path, or a negative errno. */
  node(path: string): number {
    if (path === '/') return ROOT_ID;
    return this.removedBy(path) ?? this.walk(path);
  }

  /** Whether a path is libfuse's for a file that was removed while open. */
  isRemoved(path: string): boolean {
    return this.removedBy(path) !== undefined;
  }

  private removedBy(path: string): number | undefined {
    return this.removed.get(path.slice(path.lastIndexOf('/') + 1));
  }

  /** The directory of a path, and the name in it; or a negative errno. */
  place(path: string): Place | number {
    const slash = path.lastIndexOf('/');
    const parent = slash === 0 ? ROOT_ID : this.walk(path.slice(0, slash));
    return parent < 0 ? parent : { parent, name: path.slice(slash + 1) };
  }

  private walk(path: string): number {
    let node = ROOT_ID;
    for (const name of path.slice(1).split('/')) {
      node = this.child(node, name);
      if (node < 0) return node;
    }
    return node;
  }

  /** The node of a name in a directory, or a negative errno. */
  child(parent: number, name: string): number {
    const { reply } = this;
    reply.begin();
    const error = this.handler.lookup(parent, name, reply);
    if (error) return -error;
    const node = entryId(reply);
    if (node === 0) return -ENOENT;
    this.keep(node);
    return node;
  }

  /** The handler has counted a node once more. */
  keep(node: number): void {
    if (this.known.delete(node)) this.handler.forget(node, 1);
    this.known.add(node);
  }

  open(node: number): void {
    this.opens.set(node, (this.opens.get(node) ?? 0) + 1);
  }

  close(node: number): void {
    const left = this.opens.get(node)! - 1;
    if (left > 0) this.opens.set(node, left);
    else this.opens.delete(node);
  }

  /** Whether libfuse takes a file, which is open, out of the view by renaming it to `name`. */
  isHiding(node: number, name: string): boolean {
    return HIDDEN.test(name) && this.opens.has(node);
  }

  /** The node has lost its name, and goes on under libfuse's. */
  hide(name: string, node: number): void {
    this.removed.set(name, node);
  }

  /** libfuse is through with a file that was removed while open. False: `path` leads to no such file. */
  unhide(path: string): boolean {
    const name = path.slice(path.lastIndexOf('/') + 1);
    const node = this.removed.get(name);
    if (node === undefined) return false;
    this.removed.delete(name);
    this.release(node);
    return true;
  }

  /** The node is gone from the view: its content is to go as soon as nobody has it open. */
  release(node: number): void {
    if (!this.opens.has(node) && this.known.delete(node)) this.handler.forget(node, 1);
  }

  /** Forgets what was not used for long. Not while a request uses ids. */
  trim(): void {
    let surplus = this.known.size - REMEMBERED;
    if (surplus <= 0) return;
    for (const node of this.known) {
      if (surplus-- <= 0) return;
      if (!this.opens.has(node)) {
        this.known.delete(node);
        this.handler.forget(node, 1);
      } else if (this.known.delete(node)) this.known.add(node);
    }
  }
}
