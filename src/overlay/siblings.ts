/**
 * Writers do not write the protected name: they write a sibling and rename it. This file answers which names a
 * given name may be a temporary, backup, lock or side file of, by taking decorations off it, one after another
 * (`X.4711.<uuid>.tmp` reaches X). Names are byte strings without a slash.
 *
 * Every name it gives is a substring of the one it was asked about; rules.ts relies on that to ask seldom.
 *
 * The forms come from the writers themselves: vim (`.X.swp`, `X~`), Emacs (`#X#`, `.#X`, `X.~1~`), rsync and
 * Python and Rust temporary files, write-file-atomic (`X.<digits>`), atomically (`X.tmp-<time><hex>`), Roo Code
 * (`.X.new_*.tmp`, `.X.bak_*.tmp`), Cline (`X.<pid>.<uuid>.tmp`), Gemini CLI (`X.unreadable-<ts>`, `X.tmp-<pid>`),
 * OpenClaw (`X.deleted.<ts>.zst`, `X.backup-<uuid>`), Codex (`X.zst`), JetBrains (`X___jb_tmp___`), VS Code
 * (`X.vsctmp`), Helix (`XAbCdEf.bck`), LibreOffice (`.~lock.X#`), macOS safe save (`X.sb-*`), SQLite.
 */

/** SQLite finds these by the database's name, so they must be where the database is. */
export const SIDE_SUFFIXES = ['-wal', '-shm', '-journal'] as const;

export const DATABASE_EXTENSION = '\\.(?:db|db3|s3db|sl3|sdb|sqlite|sqlite2|sqlite3|sqlitedb|vscdb)';

const DATABASE_NAME = new RegExp(`.${DATABASE_EXTENSION}$`, 'is');

export function isDatabaseName(name: string): boolean {
  return DATABASE_NAME.test(name);
}

/** The database whose side file `name` is, if the name says so by its extension (`work-journal` may be a diary). */
export function databaseOf(name: string): string | undefined {
  for (const suffix of SIDE_SUFFIXES) {
    if (!name.endsWith(suffix)) continue;
    const database = name.slice(0, -suffix.length);
    return isDatabaseName(database) ? database : undefined;
  }
  return undefined;
}

/**
 * Endings that replace an extension (Python's `path.with_suffix('.tmp')`): `MEMORY.tmp` belongs to `MEMORY.md`.
 * Only for names written out in a rule; `*.jsonl` does not claim every `*.tmp`.
 */
export const STEM_ENDINGS = ['.tmp', '.temp', '.new', '.bak', '.swp', '.part'] as const;

/** `name` without its extension, when it has one that is not such an ending itself. */
export function stemOf(name: string): string | undefined {
  if (!endsInExtension(name) || STEM_ENDINGS.some((ending) => name.endsWith(ending))) return undefined;
  return name.slice(0, name.lastIndexOf('.'));
}

/** The names that `name` may be derived from, nearest first, without itself; worked out as they are asked for. */
export function* bareNames(name: string): Generator<string, void, void> {
  const found = new Set([name]);
  const add = (bare: string) => {
    if (bare !== '' && bare !== '.' && bare !== '..') found.add(bare);
  };
  // A Set goes on to what is added to it meanwhile.
  for (const bare of found) {
    if (bare !== name) yield bare;
    strip(bare, add);
  }
}

const PREFIXES = /^(?:\.#|\.~lock\.|\.~|~\$|\.?te?mp[-_.])/;
const BACKUP_TAILS = /(?:~|\.~\d+~)$/;

/**
 * Kinds that may go on (`.tmp-4711`, `.deleted.2026-01-02T03-04-05Z.zst`). The look-aheads spare the words that begin
 * like a kind and are none: `.tmpl`, `.template`, `.temperature`, `.news`, `.older`, `.party`.
 */
const DOTTED_KINDS =
  /\.(?:tmp(?!l(?:\W|$))|temp(?!l|er)|new(?!s)|bak(?!e|i)|bck|backup|old(?!e)|orig(?!in(?!al))|part(?!y|n|ic|s(?:\W|$))|deleted|reset|unreadable|save(?!d|r)|sb-|sw[a-eg-z](?![a-z])|lock(?!e|s)|vsctmp|rej(?=$|\.))/g;
const COMPRESSED = /\.(?:zst|gz|bz2|xz|lz4|br)$/;
const SIDE_TAILS = /(?:-wal|-shm|-journal|-mj[0-9A-Fa-f]{6,12})$/;
const JETBRAINS_TAIL = /___jb_(?:tmp|old|bak)___$/;
/** With `-` and `_` a kind must be the last word, and follow an extension: `memory-new` may be anything. */
const JOINED_KIND = /[-_](?:tmp|temp|new|bak|backup|old|orig|part|lock|swp)$/;

const DIGITS = /[-._]\d+$/;
const UUID = /[-._][0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/;
const TIMESTAMP = /[-._]\d{4}-?\d\d-?\d\d(?:[T_ -]\d\d[\d:.,_-]*(?:Z|[+-]\d\d:?\d\d)?)?$/;
/** Go's CreateTemp and Rust's and Python's prefixes put no mark before the random part. */
const UNMARKED_DIGITS = /\d{6,10}$/;
const UNMARKED_LENGTHS = [6, 8] as const;
const NANOID_LENGTH = 21;

function strip(name: string, add: (bare: string) => void): void {
  const cut = (at: number) => {
    if (at <= 0) return;
    add(name.slice(0, at));
    // The hidden form of the same: `.X4711`, `.X-Ab12Cd`.
    if (name[0] === '.' && at > 1) add(name.slice(1, at));
  };
  const cutRandom = (at: number) => {
    if (at > 0 && isRandom(name.slice(at + 1), hasExtension(name.slice(0, at)))) cut(at);
  };

  if (name[0] === '#' && name.endsWith('#')) add(name.slice(1, -1));
  if (name[0] === '.') {
    for (let dot = name.indexOf('.', 2); dot !== -1; dot = name.indexOf('.', dot + 1))
      add(name.slice(1, dot));
  }
  const prefix = PREFIXES.exec(name)?.[0];
  if (prefix !== undefined) {
    const rest = name.slice(prefix.length);
    add(prefix === '.~lock.' && rest.endsWith('#') ? rest.slice(0, -1) : rest);
  }

  for (const form of [BACKUP_TAILS, COMPRESSED, SIDE_TAILS, JETBRAINS_TAIL, DIGITS, UUID, TIMESTAMP]) {
    cut(name.search(form));
  }
  for (const kind of name.matchAll(DOTTED_KINDS)) cut(kind.index);

  const joined = name.search(JOINED_KIND);
  if (joined > 0 && hasExtension(name.slice(0, joined))) cut(joined);
  const digits = name.search(UNMARKED_DIGITS);
  if (digits > 0 && endsInExtension(name.slice(0, digits))) cut(digits);
  for (const length of UNMARKED_LENGTHS) {
    const at = name.length - length;
    if (at > 0 && endsInExtension(name.slice(0, at)) && isRandom(name.slice(at), true)) cut(at);
  }
  for (const marks of ['.', '.-', '.-_']) cutRandom(lastOf(name, marks));
  // A nanoid has marks within.
  const nanoid = name.length - NANOID_LENGTH - 1;
  if (/[-._]/.test(name[nanoid] ?? '')) cutRandom(nanoid);
}

function lastOf(name: string, marks: string): number {
  let at = -1;
  for (const mark of marks) at = Math.max(at, name.lastIndexOf(mark));
  return at;
}

/** `a.md`, and `a.md.4711` too. */
function hasExtension(name: string): boolean {
  return /[^.]\.[A-Za-z]/.test(name);
}

function endsInExtension(name: string): boolean {
  return /[^.]\.[A-Za-z][A-Za-z0-9]{0,15}$/.test(name);
}

/**
 * Whether a suffix looks like chance. After a name with an extension (`MEMORY.md.qwzrtxkv`) little else comes, so
 * letters alone will do unless they are a word in use: 6 % of Python's temporary names, and 14 % of six characters
 * in base 36, have no digit. After a bare name (`memory-service`) it must be unmistakable.
 */
function isRandom(token: string, afterExtension: boolean): boolean {
  if (!/^[A-Za-z0-9_-]{5,}$/.test(token)) return false;
  const digit = /\d/.test(token);
  const letter = /[A-Za-z]/.test(token);
  if (!digit && !letter) return false;
  if (!afterExtension) return isUnmistakable(token);
  const lower = token.toLowerCase();
  if (ORDINARY_WORDS.has(lower) || /^v\d{1,3}(?:alpha|beta|rc|draft|final)?\d?$/.test(lower)) return false;
  if (token.includes('-')) return token.length >= 10 && /[a-z]/.test(token) && /[A-Z]/.test(token.slice(1));
  if (digit) return letter;
  if (token.includes('_'))
    return token.length === 8 && !lower.split('_').every((w) => w === '' || ORDINARY_WORDS.has(w));
  return token.length >= 6;
}

function isUnmistakable(token: string): boolean {
  if (!/^[A-Za-z0-9]{6,}$/.test(token)) return false;
  if (/^(?=.*\d)(?=.*[a-f])[0-9a-f]{8,}$/.test(token)) return true;
  if (/\d/.test(token) && /[a-z]/.test(token) && /[A-Z]/.test(token)) return true;
  return (token.match(/\d(?=[A-Za-z])|[A-Za-z](?=\d)/g)?.length ?? 0) >= 3;
}

/** Letters with digits, or capitals in the middle: no word, whatever it follows. */
export function isMixed(token: string): boolean {
  if (!/^[A-Za-z0-9_-]+$/.test(token)) return false;
  if (/\d/.test(token)) return /[A-Za-z]/.test(token);
  return /[a-z]/.test(token) && /[A-Z]/.test(token.slice(1));
}

/** Suffixes of five and more characters that people put after a full file name. */
const ORDINARY_WORDS: ReadonlySet<string> = new Set(
  (
    'actual adoc amd64 analysis ansible archive arm64 arrow asciidoc avro backup base32 base64 build cache canonical ' +
    'checksum clean cleaned compressed config context converter copy crc32 css data dataset decoded decrypted default ' +
    'defaults deprecated development diff digest disabled dist docbook draft dummy enabled encoded encrypted english ' +
    'errors es2015 example examples expected export feather filtered final fixture fixtures format formatted french ' +
    'german gitignore golden graphql handlebars header headers helper helpers html html5 ignore image import index info ' +
    'ipynb jinja jinja2 journal jsonlines jsonschema latex latin1 legacy lexer license linted loader local locked ' +
    'manifest markdown master md5sum merged messages metadata minified mustache notes nunjucks openapi optional original ' +
    'output parquet parsed parser partial patch pickle plain preview private processed prod production properties ' +
    'proto protobuf public python reader readme redacted reference release report result results ruby rules sample ' +
    'samples saved schema schemas script sealed secret settings sha1sum sha224 sha256 sha256sum sha384 sha512 ' +
    'signature signed skeleton snapshot sorted source spec staging stats stories stream style stylesheet summary svelte ' +
    'swift table template templates test testing tests toml torrent translated transformed translation txtar types ' +
    'typescript unsigned updated utf16 utf32 utils validator vendor version website writer yamllint'
  ).split(' '),
);
