/**
 * Shingles: runs of `SHINGLE_WORDS` consecutive words, as numbers to compare. Two texts that share a passage share its
 * shingles, whatever became of case, line breaks, indentation, quoting and punctuation; a word that was changed takes
 * eight shingles with it and leaves the rest (Broder, "On the resemblance and containment of documents", 1997).
 */
import { isAscii } from 'node:buffer';

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
  return isAscii(bytes) ? bytes : Buffer.from(bytes.toString('utf8').normalize('NFKC').toLowerCase());
}

/** Multipliers of two polynomials of the last words' hashes, and their powers for the word that drops out. */
const HIGH = 0x85ebca6b;
const LOW = 0xc2b2ae35;
const HIGH_OUT = power(HIGH, SHINGLE_WORDS);
const LOW_OUT = power(LOW, SHINGLE_WORDS);

function power(base: number, exponent: number): number {
  let product = 1;
  for (let i = 0; i < exponent; i++) product = Math.imul(product, base);
  return product;
}

/** The last words of a text, as `eachShingle` shows them at each word: the same object each time. */
export class Shingle {
  /** An integer below 2^52. */
  hash = 0;
  /** Which word of the text is the last, counted from 0. */
  last = -1;
  /** Bytes of the words together. */
  bytes = 0;
  private high = 0;
  private low = 0;
  private readonly hashes = new Int32Array(SHINGLE_WORDS);
  private readonly lengths = new Int32Array(SHINGLE_WORDS);
  private readonly lettered = new Uint8Array(SHINGLE_WORDS);
  /** Code marks in front of each word. */
  private readonly marks = new Int32Array(SHINGLE_WORDS);

  /** One word more. Returns whether there are enough for a shingle. */
  add(word: number, length: number, letters: boolean, marks: number): boolean {
    const slot = ++this.last % SHINGLE_WORDS;
    // The slot holds 0 until it has been filled once, which takes nothing out.
    const out = this.hashes[slot]!;
    this.high = (Math.imul(this.high, HIGH) + word - Math.imul(out, HIGH_OUT)) | 0;
    this.low = (Math.imul(this.low, LOW) + word - Math.imul(out, LOW_OUT)) | 0;
    this.bytes += length - this.lengths[slot]!;
    this.hashes[slot] = word;
    this.lengths[slot] = length;
    this.lettered[slot] = letters ? 1 : 0;
    this.marks[slot] = marks;
    this.hash = (this.high >>> 0) * 2 ** 20 + (this.low >>> 12);
    return this.last >= SHINGLE_WORDS - 1;
  }

  /** Prose that is worth comparing: not code, not numbers, not the same few words. */
  get isTelling(): boolean {
    if (this.bytes < LEAST_BYTES) return false;
    const first = (this.last + 1) % SHINGLE_WORDS;
    let letters = 0;
    let codeMarks = 0;
    for (let slot = 0; slot < SHINGLE_WORDS; slot++) {
      letters += this.lettered[slot]!;
      if (slot !== first) codeMarks += this.marks[slot]!;
    }
    const distinct = new Set(this.hashes).size;
    return letters >= LEAST_LETTERED && codeMarks <= MOST_CODE_MARKS && distinct >= LEAST_DISTINCT;
  }
}

/** Calls `visit` for each shingle of `text`, which `folded` has given. */
export function eachShingle(text: Buffer, visit: (shingle: Shingle) => void): void {
  const shingle = new Shingle();
  let marks = 0;
  const { length } = text;
  for (let at = 0; at < length; ) {
    const byte = text[at]!;
    const kind = KINDS[byte]!;
    if (kind === DIGIT || kind === LETTER) {
      const start = at;
      let hash = 0x811c9dc5;
      let letters = false;
      for (let here = kind; here === DIGIT || here === LETTER; ) {
        const char = text[at]!;
        if (here === LETTER) letters = true;
        hash = Math.imul(hash ^ (char >= 0x41 && char <= 0x5a ? char | LOWER_CASE : char), 0x01000193);
        here = ++at < length ? KINDS[text[at]!]! : SEPARATOR;
      }
      if (shingle.add(hash, at - start, letters, marks)) visit(shingle);
      marks = 0;
    } else if (kind === IDEOGRAPH || (kind === EAST_ASIAN && text[at + 1] !== 0x80)) {
      const hash = (byte << 16) | ((text[at + 1] ?? 0) << 8) | (text[at + 2] ?? 0);
      if (shingle.add(Math.imul(hash, 0x9e3779b1), 3, true, marks)) visit(shingle);
      marks = 0;
      at += 3;
    } else if (kind === SEPARATOR) {
      marks += CODE_MARK[byte]!;
      // An escaped line break in JSON or in source: its letter belongs to no word.
      if (byte === BACKSLASH && isEscape(text[at + 1])) at++;
      at++;
    } else at += kind === MARK_2 ? 2 : kind === MARK_4 ? 4 : 3;
  }
}

function isEscape(byte: number | undefined): boolean {
  return byte === 0x6e || byte === 0x72 || byte === 0x74; // n, r, t
}
