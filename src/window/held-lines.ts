/** How a path that a window holds is told in one line. */
import type { HeldPath, Side } from '../overlay/look.ts';
import { formatSize } from './size.ts';

export function heldLine({ shown, kind, renamedFrom, upper, lower, program }: HeldPath): string {
  const by = program ? `  (${program.command} ${program.pid})` : '';
  return `${shown}  ${what(kind, renamedFrom, upper, lower)}${by}`;
}

/** `formatSize` says nothing of the unit where there is none. */
export function sizeText(bytes: number): string {
  return bytes < 1024 ? `${bytes} byte${bytes === 1 ? '' : 's'}` : formatSize(bytes);
}

function what(
  kind: HeldPath['kind'],
  from: string | undefined,
  upper: Side | null,
  lower: Side | null,
): string {
  if (kind === 'deleted') return `deleted${lower?.type === 'directory' ? ' (a directory)' : ''}`;
  const moved = kind === 'created' ? '' : `${kind}, `;
  const parts = [from === undefined ? kind : `${moved}renamed from ${from}`];
  if (!upper) return parts[0]!;
  if (upper.type !== 'file') parts.push(`a ${upper.type === 'other' ? 'special file' : upper.type}`);
  else parts.push(sizeText(upper.size));
  if (lower && lower.type !== upper.type) parts.push(`in place of a ${lower.type}`);
  return parts.join(', ');
}
