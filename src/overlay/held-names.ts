/**
 * Temporary names that tell nothing of their target. In the directory of an anchored file rule such a file is held
 * in the upper until its rename shows what it is (design 3, "Held"). Names are byte strings without a slash.
 *
 * A wrong yes costs a move to the lower at close, a wrong no shows protected bytes in the lower until the rename:
 * where a form is shared with ordinary names, it is held.
 */
import { isMixed } from './siblings.ts';

const FORMS = [
  // Hidden and called temporary: Hermes `.mem_x9.tmp`, opencode `.oc-1a.tmp`, Sublime `.subl3f.tmp`.
  /^\..*\.te?mp$/s,
  // Python's tempfile, with its suffix: `tmpab12cd_x.md`; always eight characters, six for older ones with a digit.
  /^tmp[a-z0-9_]{8}(?:\.[A-Za-z0-9]{1,8})?$/,
  /^tmp(?=[a-z_]*\d)[a-z0-9_]{5,12}(?:\.[A-Za-z0-9]{1,8})?$/,
  // mktemp(1) `tmp.aB3dE5gH1j`, Rust's tempfile `.tmpXXXXXX`, `tmp-4711`, `.temp_1a2b`.
  /^\.?te?mp[-_.](?=.*(?:\d|[a-z][A-Z]|[A-Z]{2}))[A-Za-z0-9_-]{3,}(?:\.te?mp)?$/,
  /^\.te?mp[A-Za-z0-9]{6,}$/,
  // sed -i, GLib, SQLite.
  /^sed[A-Za-z0-9]{6}$/,
  /^\.goutputstream-[A-Za-z0-9]{6}$/,
  /^etilqs_[A-Za-z0-9]+$/,
  // Vim's probe whether the directory can be written, and Go's CreateTemp without a pattern.
  /^(?:4913|\d{6,10})$/,
  // A uuid, or digits, or hexadecimal called temporary.
  /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}(?:\.te?mp)?$/,
  /^(?:\d+|[0-9a-f]{6,})\.te?mp$/,
];

/** perl -i and mkstemp without a prefix: eight random characters, and hidden ones of six and more. */
const BARE_RANDOM = /^(?:\.([A-Za-z0-9]{6,12})|([A-Za-z0-9]{8}))$/;
const RANDOM_AND_TMP = /^([A-Za-z0-9]{6,12})\.te?mp$/;
const CAMEL_CASE = /^[A-Za-z]?[a-z]+(?:[A-Z][a-z]+)*\d{0,3}$/;

export function isHeldName(name: string): boolean {
  if (FORMS.some((form) => form.test(name))) return true;
  const bare = BARE_RANDOM.exec(name) ?? RANDOM_AND_TMP.exec(name);
  const token = bare?.[1] ?? bare?.[2];
  return token !== undefined && isMixed(token) && /[A-Z]/.test(token) && !CAMEL_CASE.test(token);
}
