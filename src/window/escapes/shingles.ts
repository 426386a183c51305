/**
 * Shingles: runs of `SHINGLE_WORDS` consecutive words, as numbers to compare. Two texts that share a passage share its
 * shingles, whatever became of case, line breaks, indentation, quoting and punctuation; a word that was changed takes
 * eight shingles with it and leaves the rest (Broder, "On the resemblance and containment of documents", 1997).
 */

export const SHINGLE_WORDS = 8;
/** Bytes of its words together: eight of English have some 36, eight CJK characters 24. */
const LEAST_BYTES = 24;
const LEAST_DISTINCT = 5;
/** Words with a letter in them. */
const LEAST_LETTERED = 6;
/** Characters between its words that prose hardly has: a call, a path, a line of JSON are above it. */
const MOST_CODE_MARKS = 3;

/** What a byte is to a word. */
const SEPARATOR = 0;
const DIGIT = 1;
const LETTER = 2;
/** The first of three bytes that are a word by themselves: CJK is written without spaces. */
const IDEOGRAPH = 3;
/** The first of two, three or four bytes that are no part of a word. */
const MARK_2 = 4;
const MARK_3 = 5;
const MARK_4 = 6;
/** The first of an ideograph or, in U+3000 to U+303F, of punctuation. */
const EAST_ASIAN = 7;

const KINDS = new Uint8Array(256);
const CODE_MARK = new Uint8Array(256);
for (let byte = 0; byte < 256; byte++) {
  const char = String.fromCharCode(byte);
  if (/[0-9]/.test(char)) KINDS[byte] = DIGIT;
  else if (/[A-Za-z]/.test(char) || byte >= 0x80) KINDS[byte] = LETTER;
}
// UTF-8: U+0080-00BF and U+2000-2FFF are marks (nbsp, dashes, quotes, arrows, box drawing), as are emoji.
KINDS[0xc2] = MARK_2;
KINDS[0xe2] = MARK_3;
KINDS[0xe3] = EAST_ASIAN;
KINDS.fill(IDEOGRAPH, 0xe4, 0xea);
KINDS.fill(MARK_4, 0xf0, 0xf5);
for (const char of '{}[]()<>;=$|&\\+/@') CODE_MARK[char.charCodeAt(0)] = 1;

const BACKSLASH = 0x5c;
const LOWER_CASE = 0x20;

/** Bytes whose words are found whatever their case: most text is ASCII and stays as it is. */
export function folded(bytes: Buffer): Buffer {
  for (const byte of bytes) {
    if (byte >= 0x80) return Buffer.from(bytes.toString('utf8').normalize('NFKC').toLowerCase());
  }
  return bytes;
}

/** One shingle as `eachShingle` shows it: the same object each time. */
export interface Shingle {
  /** An integer below 2^52. */
  hash: number;
  /** Which word of the text is its last, counted from 0. */
  last: number;
  /** Prose that is worth comparing: not code, not numbers, not the same few words. */
  telling: boolean;
  /** Bytes of its words together. */
  bytes: number;
}

/** Calls `visit` for each shingle of `text`, which `folded` has given. */
export function eachShingle(text: Buffer, visit: (shingle: Shingle) => void): void {
  const hashes = new Int32Array(SHINGLE_WORDS);
  const lengths = new Int32Array(SHINGLE_WORDS);
  const lettered = new Uint8Array(SHINGLE_WORDS);
  /** Code marks in front of each word. */
  const marks = new Int32Array(SHINGLE_WORDS);
  const shingle: Shingle = { hash: 0, last: -1, telling: false, bytes: 0 };
  let marksBefore = 0;
  const word = (hash: number, length: number, letters: boolean) => {
    const index = ++shingle.last;
    const slot = index % SHINGLE_WORDS;
    hashes[slot] = hash;
    lengths[slot] = length;
    lettered[slot] = letters ? 1 : 0;
    marks[slot] = marksBefore;
    marksBefore = 0;
    if (index < SHINGLE_WORDS - 1) return;
    combine(shingle, hashes, lengths, lettered, marks);
    visit(shingle);
  };
  const { length } = text;
  for (let at = 0; at < length; ) {
    const byte = text[at]!;
    const kind = KINDS[byte]!;
    if (kind === DIGIT || kind === LETTER) {
      const start = at;
      let hash = 0x811c9dc5;
      let letters = false;
      for (let kindHere = kind; kindHere === DIGIT || kindHere === LETTER; ) {
        const here = text[at]!;
        if (kindHere === LETTER) letters = true;
        hash = Math.imul(hash ^ (here >= 0x41 && here <= 0x5a ? here | LOWER_CASE : here), 0x01000193);
        kindHere = ++at < length ? KINDS[text[at]!]! : SEPARATOR;
      }
      word(hash, at - start, letters);
    } else if (kind === IDEOGRAPH || (kind === EAST_ASIAN && text[at + 1] !== 0x80)) {
      const hash = (byte << 16) | ((text[at + 1] ?? 0) << 8) | (text[at + 2] ?? 0);
      word(Math.imul(hash, 0x9e3779b1), 3, true);
      at += 3;
    } else if (kind === SEPARATOR) {
      marksBefore += CODE_MARK[byte]!;
      // An escaped line break in JSON or in source: its letter belongs to no word.
      if (byte === BACKSLASH && isEscape(text[at + 1])) at++;
      at++;
    } else at += kind === MARK_2 ? 2 : kind === MARK_4 ? 4 : 3;
  }
}

function isEscape(byte: number | undefined): boolean {
  return byte === 0x6e || byte === 0x72 || byte === 0x74; // n, r, t
}

function combine(
  shingle: Shingle,
  hashes: Int32Array,
  lengths: Int32Array,
  lettered: Uint8Array,
  marks: Int32Array,
): void {
  let high = 0;
  let low = 0;
  let bytes = 0;
  let letters = 0;
  let codeMarks = 0;
  let distinct = 0;
  const first = shingle.last + 1; // the slot after the newest is the oldest
  for (let i = 0; i < SHINGLE_WORDS; i++) {
    const slot = (first + i) % SHINGLE_WORDS;
    const hash = hashes[slot]!;
    high = Math.imul(high ^ hash, 0x85ebca6b) + i;
    low = Math.imul(low + hash, 0xc2b2ae35) ^ (low >>> 15);
    bytes += lengths[slot]!;
    letters += lettered[slot]!;
    if (i > 0) codeMarks += marks[slot]!;
    let seen = false;
    for (let j = 0; j < i && !seen; j++) seen = hashes[(first + j) % SHINGLE_WORDS] === hash;
    if (!seen) distinct++;
  }
  shingle.hash = (high >>> 0) * 2 ** 20 + (low >>> 12);
  shingle.bytes = bytes;
  shingle.telling =
    bytes >= LEAST_BYTES &&
    distinct >= LEAST_DISTINCT &&
    letters >= LEAST_LETTERED &&
    codeMarks <= MOST_CODE_MARKS;
}
