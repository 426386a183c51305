/**
 * The protected side of the look: the text that is new in this window, and the text that was there before it, which is
 * no escape of this window wherever it stands.
 */
import { type Change, changesOf } from '../../overlay/changes.ts';
import type { Overlay } from '../../overlay/overlay.ts';
import { S_IFREG } from '../../sys/constants.ts';
import { protectedText } from './protected-text.ts';
import { readLower, readUpper } from './quiet-reads.ts';
import type { Source } from './resemblance.ts';

/** One root of the window. */
export interface SearchedRoot {
  overlay: Overlay;
  /** How the report names a path (a byte string, relative to the root). */
  show(path: string): string;
}

export interface Protected {
  root: SearchedRoot;
  changes: Change[];
  sources: Source[];
  before: Buffer[];
  /** A line for each protected file whose text could not be taken. */
  unsearched: string[];
}

/** Of one protected file, and of all of a root together: a day's transcript has 5 MB. */
const FILE_BYTES = 32 << 20;
const ALL_BYTES = 64 << 20;

export function protectedOf(root: SearchedRoot): Protected {
  const { overlay } = root;
  const part: Protected = { root, changes: changesOf(overlay), sources: [], before: [], unsearched: [] };
  let left = ALL_BYTES;
  for (const change of part.changes) {
    if (change.type !== S_IFREG) continue;
    const before = textBefore(overlay, change);
    if (!change.node) {
      if (before) part.before.push(before);
      continue;
    }
    const content = readUpper(overlay, change, Math.min(FILE_BYTES, left));
    if (content === 'large') part.unsearched.push('large protected files');
    if (typeof content === 'string') continue;
    left -= content.bytes.length;
    const fresh = before ? grownBy(before, content.bytes) : content.bytes;
    const { passages } = protectedText(change.path, fresh);
    if (before) part.before.push(before, ...passagesOf(change.path, before));
    part.sources.push({
      shown: root.show(change.path),
      since: overlay.ledger.since(change.path) ?? 0,
      passages,
    });
  }
  return part;
}

function textBefore(overlay: Overlay, change: Change): Buffer | undefined {
  const path = change.lower ? change.path : change.renamedFrom;
  if (path === undefined) return undefined;
  const content = readLower(overlay.lowerFd, path, FILE_BYTES);
  return typeof content === 'string' ? undefined : content.bytes;
}

/** Of a log that was only appended to what is new: the old part need not be read as text again. */
function grownBy(before: Buffer, now: Buffer): Buffer {
  const grew = before.length > 0 && before.at(-1) === 0x0a && now.length > before.length;
  return grew && now.subarray(0, before.length).equals(before) ? now.subarray(before.length) : now;
}

/** As the window's own version is read: what is escaped in JSON stands in no other file like that. */
function passagesOf(path: string, bytes: Buffer): Buffer[] {
  return protectedText(path, bytes).passages.map((passage) => Buffer.from(passage));
}
