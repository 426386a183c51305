/** What came of a keep: the paths that were kept, or why none was. */
import { S_IFDIR, S_IFLNK, S_IFMT, S_IFREG } from '../sys/constants.ts';
import { SysError } from '../sys/errno.ts';
import { Stat } from '../sys/stat.ts';
import type { Change } from './changes.ts';
import type { Overlay } from './overlay.ts';

/** One path that was kept. Names are made readable. */
export interface KeptPath {
  path: string;
  kind: Change['kind'];
  type: FileType;
  /** Bytes of a regular file. */
  size: number;
}

export type FileType = 'file' | 'directory' | 'symlink' | 'other';

/** It cannot be done, and nothing was. The message is a line for the person. */
export class KeepError extends Error {}

export function typeName(type: number): FileType {
  const names: Record<number, FileType> = { [S_IFREG]: 'file', [S_IFDIR]: 'directory', [S_IFLNK]: 'symlink' };
  return names[type & S_IFMT] ?? 'other';
}

export function keptPath(o: Overlay, { path, kind, type, node }: Change): KeptPath {
  const st = new Stat();
  const isFile = node?.isRegular && st.at(o.upper.fd, o.upper.name(node.upper)) === 0;
  return { path: o.ledger.shown(path), kind, type: typeName(type), size: isFile ? st.size : 0 };
}

/** What a system call about this path of the view came to. */
export function failedAt(o: Overlay, path: string, error: number): SysError {
  return new SysError(error, path === '' ? 'the workspace' : o.ledger.shown(path));
}
