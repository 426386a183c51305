/**
 * git's objects as they stand in a repository: loose ones, and packs as far as they need no other object. git itself is
 * not run: it would execute what the repository's configuration names (docs/decisions.md).
 *
 * Formats: Documentation/gitformat-loose.txt, Documentation/gitformat-pack.txt.
 */
import { inflateSync, type ZlibOptions } from 'node:zlib';

export interface GitObject {
  type: 'commit' | 'tree' | 'blob' | 'tag' | 'delta';
  body: Buffer;
}

const LOOSE = /^(.*\/|)objects\/([0-9a-f]{2})\/([0-9a-f]{38}|[0-9a-f]{62})$/;
const PACK = /^(.*\/|)objects\/pack\/[^/]*pack-[^/]*\.pack$/;

/** The repository's directory and, of a loose object, its id; undefined for a path that is neither. */
export function gitObjectPath(path: string): { repository: string; id: string | undefined } | undefined {
  const loose = LOOSE.exec(path);
  if (loose) return { repository: loose[1]!.replace(/\/$/, ''), id: loose[2]! + loose[3]! };
  const pack = PACK.exec(path);
  return pack ? { repository: pack[1]!.replace(/\/$/, ''), id: undefined } : undefined;
}

/** Undefined for bytes that are no object, or a larger one than `most`. */
export function looseObject(bytes: Buffer, most: number): GitObject | undefined {
  let content: Buffer;
  try {
    content = inflateSync(bytes, { maxOutputLength: most });
  } catch {
    return undefined;
  }
  const header = /^(commit|tree|blob|tag) \d+$/.exec(content.latin1Slice(0, Math.max(0, content.indexOf(0))));
  if (!header) return undefined;
  return { type: header[1] as GitObject['type'], body: content.subarray(content.indexOf(0) + 1) };
}

const PACKED = { 1: 'commit', 2: 'tree', 3: 'blob', 4: 'tag', 6: 'delta', 7: 'delta' } as const;
const OFFSET_DELTA = 6;
const REFERENCE_DELTA = 7;
const SHA1_BYTES = 20;

/**
 * The objects of a pack, in its order. Of one that is kept as a difference to another the difference: what is new in
 * it stands there as it is. Ends at what it does not understand, such as an object larger than `most`.
 */
export function* packedObjects(pack: Buffer, most: number): Generator<GitObject> {
  if (pack.length < 32 || pack.latin1Slice(0, 4) !== 'PACK' || pack.readUInt32BE(4) !== 2) return;
  const count = pack.readUInt32BE(8);
  let at = 12;
  for (let n = 0; n < count && at < pack.length - SHA1_BYTES; n++) {
    const kind = (pack[at]! >> 4) & 7;
    while (pack[at++]! & 0x80);
    if (kind === OFFSET_DELTA) while (pack[at++]! & 0x80);
    if (kind === REFERENCE_DELTA) at += SHA1_BYTES;
    const type = PACKED[kind as keyof typeof PACKED];
    const inflated = type && inflate(pack.subarray(at), most);
    if (!inflated) return;
    at += inflated.consumed;
    yield { type, body: inflated.body };
  }
}

/** A zlib stream that something may follow, and how long it is. */
function inflate(bytes: Buffer, most: number): { body: Buffer; consumed: number } | undefined {
  try {
    const options: ZlibOptions = { maxOutputLength: most, info: true };
    const { buffer, engine } = inflateSync(bytes, options) as unknown as {
      buffer: Buffer;
      engine: { bytesWritten: number };
    };
    return { body: buffer, consumed: engine.bytesWritten };
  } catch {
    return undefined;
  }
}

/** The names in a tree, with the ids they lead to. `idBytes` is 20, or 32 where the repository uses SHA-256. */
export function* treeEntries(body: Buffer, idBytes: number): Generator<{ name: string; id: string }> {
  for (let at = 0; at < body.length; ) {
    const space = body.indexOf(0x20, at);
    const end = body.indexOf(0, space);
    if (space < 0 || end < 0) return;
    const next = end + 1 + idBytes;
    yield { name: body.latin1Slice(space + 1, end), id: body.toString('hex', end + 1, next) };
    at = next;
  }
}

/** What a person wrote of a commit or a tag: its message. */
export function messageOf(body: Buffer): Buffer {
  const gap = body.indexOf('\n\n');
  return gap < 0 ? body.subarray(body.length) : body.subarray(gap + 2);
}
