/** Is an answer the status of a window? Root asks the windows of every user, and a user may answer anything. */
import type { WindowStatus } from './control.ts';

const example: Required<WindowStatus> = {
  id: '',
  kind: 'exec',
  pid: 0,
  workspace: '',
  mountpoint: '',
  roots: [''],
  windows: [{ name: '', opened: '' }],
  since: '',
  command: [''],
  caught: { written: 0, created: 0, deleted: 0, renamed: 0, bytes: 0 },
  upper: { used: 0, limit: 0, noswap: false },
  requests: {},
  notifications: 0,
  memory: { rss: 0, nodes: 0, descriptors: 0 },
  user: 'root',
  namespace: 'own',
};

export function isWindowStatus(value: unknown): value is WindowStatus {
  if (!hasShape(value, { ...example, command: undefined })) return false;
  const { command, requests } = value as { command?: unknown; requests: object };
  return (
    (command === undefined || hasShape(command, example.command)) &&
    Object.values(requests).every((count) => typeof count === 'number')
  );
}

/** Same types at the same keys; an array has the type of its only element. An undefined one is not looked at. */
function hasShape(value: unknown, shape: unknown): boolean {
  if (shape === undefined) return true;
  if (Array.isArray(shape)) return Array.isArray(value) && value.every((item) => hasShape(item, shape[0]));
  if (typeof shape !== 'object') return typeof value === typeof shape;
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(shape!).every(([key, part]) =>
    hasShape((value as Record<string, unknown>)[key], part),
  );
}
