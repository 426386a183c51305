/**
 * Names are bytes on Linux. Inside forget a name is a string in which each character is one byte (latin1):
 * lossless, comparable, usable as a Map key. This file turns such strings into what system calls take.
 */

/** A new NUL-terminated Buffer of a byte string. */
export function cstring(name: string): Buffer {
  const out = Buffer.allocUnsafe(name.length + 1);
  out.latin1Write(name, 0);
  out[name.length] = 0;
  return out;
}

const scratch = [Buffer.alloc(8192), Buffer.alloc(8192)] as const;

/**
 * The byte string in a Buffer that the next call with the same `slot` overwrites: for the hot path, where the
 * Buffer is handed to one system call and then forgotten. Names longer than the scratch get their own Buffer.
 */
export function scratchCstring(name: string, slot: 0 | 1 = 0): Buffer {
  if (name.length >= 8191) return cstring(name);
  const out = scratch[slot];
  out.latin1Write(name, 0);
  out[name.length] = 0;
  return out;
}

const { indexOf } = Uint8Array.prototype;

/** Where the next NUL stands, or -1. Buffer's own `indexOf` is JavaScript that looks at its arguments first. */
export function nulAt(bytes: Buffer, from: number): number {
  return indexOf.call(bytes, 0, from);
}

const TWO_32 = 2 ** 32;

/** Writes a 64-bit number as two little words at the `at`-th: exact below 2^53, negative ones too. Without `%`, which is fmod. */
export function put64(words: Uint32Array, at: number, value: number): void {
  const high = Math.floor(value / TWO_32);
  words[at] = value - high * TWO_32;
  words[at + 1] = high;
}

/** Bytes as people read them: valid UTF-8 as it is, anything else and control characters escaped. */
export function displayName(name: string): string {
  const bytes = Buffer.from(name, 'latin1');
  const text = bytes.toString('utf8');
  const lossless = Buffer.from(text, 'utf8').equals(bytes);
  const shown = lossless ? text : name.replace(/[\x80-\xff]/g, (c) => `\\x${c.charCodeAt(0).toString(16)}`);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is escaped here
  return shown.replace(/[\x00-\x1f\x7f]/g, (c) =>
    c === '\n' ? '\\n' : c === '\t' ? '\\t' : `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
}

/** A string from the command line or a config file, as a byte string. */
export function bytesOf(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}
