/**
 * Which paths the default rules protect, written by hand from DESIGN 3 and on purpose not with the product's own
 * rule code: a mistake there must not hide itself here.
 */

const SUFFIXES =
  /^(~|\.(tmp|temp|new|bak|old|orig|part|deleted|reset|unreadable).*|\.(swp|lock|zst|gz)|-(wal|shm|journal)|[.\-_][0-9a-z-]{1,40}(\.tmp)?)$/i;

function derivesFrom(name: string, target: string): boolean {
  if (name === target || name === `.${target}.swp` || name === `#${target}#`) return true;
  if (name.startsWith(`.${target}.`)) return true;
  return name.startsWith(target) && SUFFIXES.test(name.slice(target.length));
}

function isJsonl(name: string): boolean {
  for (let at = name.indexOf('.jsonl'); at > -1; at = name.indexOf('.jsonl', at + 1)) {
    const rest = name.slice(at + 6);
    if (rest === '' || SUFFIXES.test(rest)) return true;
    if (name.startsWith('.') && rest.startsWith('.')) return true;
    if (name.startsWith('#') && rest === '#') return true;
  }
  return false;
}

/** True for a path (byte string, relative to the workspace) that the default rules protect. */
export function isProtectedByDefault(path: string): boolean {
  const parts = path.split('/');
  if (path === '' || parts.includes('.git')) return false;
  if (parts[0] === 'memory') return true;
  return parts.some((name, depth) => {
    if (isJsonl(name)) return true;
    if (derivesFrom(name, 'DELIVERABLES.md')) return true;
    return depth === 0 && derivesFrom(name, 'MEMORY.md');
  });
}
