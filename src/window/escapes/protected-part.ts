/**
 * The protected side of the look: the text that is new in this window, and the text that was there before it, which is
 * no escape of this window wherever it stands.
 */
import { type Change, changesOf } from '../../overlay/changes.ts';
import type { Overlay } from '../../overlay/overlay.ts';
import type { Mark } from '../../overlay/page-history.ts';
import { S_IFREG } from '../../sys/constants.ts';
import { protectedText, withoutCode } from './protected-text.ts';
import { readLower, readUpper } from './quiet-reads.ts';
import type { Passage, Source } from './resemblance.ts';

export interface Protected {
  overlay: Overlay;
  changes: Change[];
  sources: Source[];
  before: Buffer[];
  /** A line for each protected file whose text could not be taken. */
  unsearched: string[];
}

/** Of one protected file, and of all of a root together: a day's transcript has 5 MB. */
const FILE_BYTES = 32 << 20;
const ALL_BYTES = 64 << 20;

export function protectedOf(overlay: Overlay): Protected {
  const { shown } = overlay.ledger;
  const part: Protected = { overlay, changes: changesOf(overlay), sources: [], before: [], unsearched: [] };
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
    if (before) {
      part.before.push(before);
      // One by one: a transcript has more passages than a call may have arguments.
      for (const text of textsOf(change.path, before)) part.before.push(text);
    }
    const since = overlay.ledger.since(change.path) ?? 0;
    const marks = overlay.pages.marksOf(change.node);
    const from = grownBy(before, content.bytes) ? before!.length : 0;
    part.sources.push({
      shown: shown(change.path),
      ...passagesOf(change.path, content.bytes, from, marks, since),
    });
  }
  for (const [path, versions] of overlay.pages.versions()) {
    const since = overlay.ledger.since(path) ?? 0;
    for (const { text, marks } of versions)
      part.sources.push({ shown: shown(path), ...passagesOf(path, text, 0, marks, since) });
  }
  return part;
}

/** What goes on over the place where a page grew is found by the bytes in front of it. */
const OVERLAP = 256;

/** The text of a file from `from` on, each part with the time since when it was there at the latest. */
function passagesOf(
  path: string,
  bytes: Buffer,
  from: number,
  marks: readonly Mark[],
  since: number,
): Pick<Source, 'kind' | 'passages'> {
  const whole = protectedText(path, bytes.subarray(from));
  // JSON cannot be cut where it grew.
  if (whole.kind !== 'page' || marks.length === 0)
    return { kind: whole.kind, passages: whole.passages.map((text) => ({ text, since })) };
  const passages: Passage[] = [];
  const page = withoutCode(bytes);
  let at = from;
  // What stands past the last mark was not written by a write of this window.
  for (const { time, size } of [...marks, { time: since, size: bytes.length }]) {
    if (size <= at) continue;
    const grown = protectedText(path, page.subarray(Math.max(from, at - OVERLAP), size));
    for (const text of grown.passages) passages.push({ text, since: time });
    at = size;
  }
  return { kind: whole.kind, passages };
}

function textBefore(overlay: Overlay, change: Change): Buffer | undefined {
  const path = change.lower ? change.path : change.renamedFrom;
  if (path === undefined) return undefined;
  const content = readLower(overlay.lowerFd, path, FILE_BYTES);
  return typeof content === 'string' ? undefined : content.bytes;
}

/** Whether a log was only appended to: its old part need not be read as text again. */
function grownBy(before: Buffer | undefined, now: Buffer): boolean {
  if (before?.at(-1) !== 0x0a || now.length <= before.length) return false;
  return now.subarray(0, before.length).equals(before);
}

/** As the window's own version is read: what is escaped in JSON stands in no other file like that. */
function textsOf(path: string, bytes: Buffer): Buffer[] {
  return protectedText(path, bytes).passages.map((passage) => Buffer.from(passage));
}
