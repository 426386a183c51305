/**
 * What `forget list`, `diff`, `log` and `keep` do: they ask a window over its control socket. A file of its own in dist, which
 * `forget exec` does not load.
 */
import { styleText } from 'node:util';
import type { LogEntry } from '../overlay/operations-log.ts';
import { request, WindowGone, type WindowStatus } from '../window/control.ts';
import { findWindow, heldIn } from '../window/find-window.ts';
import { heldLine, sizeText } from '../window/held-lines.ts';
import type { ListedPath, LookingMethods } from '../window/looking-methods.ts';
import { compare, diffLines, forTerminal, LARGE, type Versions } from './diff-text.ts';
import { print, printable, printJson, say } from './output.ts';
import { page } from './pager.ts';

export interface LookOptions {
  json?: true;
  window?: string;
}

export async function list(paths: readonly string[], options: LookOptions, cwd: string): Promise<void> {
  const window = await findWindow(options.window, cwd);
  const held = await heldIn(window, paths, cwd);
  if (options.json) {
    printJson(
      held.map(({ shown, kind, renamedFrom, upper, lower, program }) => ({
        path: shown,
        kind,
        type: upper?.type ?? null,
        size: upper?.size ?? null,
        lower: lower && { type: lower.type, mode: lower.mode, size: lower.size },
        ...(renamedFrom !== undefined && { renamedFrom }),
        ...(program && { program }),
      })),
    );
    return;
  }
  if (held.length === 0) print(`window ${window.id} holds nothing\n`);
  else print(held.map((one) => `${printable(heldLine(one))}\n`).join(''));
}

export async function diff(paths: readonly string[], options: LookOptions, cwd: string): Promise<void> {
  const window = await findWindow(options.window, cwd);
  const held = await heldIn(window, paths, cwd);
  const whole = withoutMoved(held);
  const lines: string[] = [];
  const objects: unknown[] = [];
  for (const one of whole) {
    const diff = compare(one, await versionsOf(window, one));
    const text = diffLines(one, diff);
    for (const line of text) lines.push(line);
    if (options.json) objects.push(jsonOf(one, diff.content, text));
  }
  if (options.json) {
    printJson(objects);
    return;
  }
  const isTerminal = process.stdout.isTTY === true;
  const shown = isTerminal ? forTerminal(lines, process.stdout.hasColors()) : lines;
  await page(Buffer.from(shown.map((line) => `${line}\n`).join(''), 'latin1'));
}

/** A renamed file is told once; and has the original to be compared with. */
function withoutMoved(held: readonly ListedPath[]): ListedPath[] {
  const at = (root: number, path: string) => `${root}:${path}`;
  const byPath = new Map(held.map((one) => [at(one.root, one.path), one]));
  const moved = new Set<ListedPath>();
  const whole = held.map((one) => {
    const from =
      one.renamedFromPath === undefined ? undefined : byPath.get(at(one.root, one.renamedFromPath));
    if (!from || one.kind !== 'created') return one;
    moved.add(from);
    return { ...one, lower: from.lower };
  });
  return whole.filter((_, i) => !moved.has(held[i]!));
}

async function versionsOf(window: WindowStatus, one: ListedPath): Promise<Versions> {
  const large = [one.lower, one.upper].some((side) => side?.type === 'file' && side.size > LARGE);
  const read = async (version: 'upper' | 'lower', path: string): Promise<Buffer | null> => {
    if (large || one[version]?.type !== 'file') return null;
    const pieces: Buffer[] = [];
    const onPart = (part: unknown) => pieces.push(Buffer.from(part as string, 'base64'));
    await request(window.id, 'content', { root: one.root, path, version, most: LARGE }, { onPart });
    return Buffer.concat(pieces);
  };
  const lowerPath = one.kind === 'created' ? (one.renamedFromPath ?? one.path) : one.path;
  return { lower: await read('lower', lowerPath), upper: await read('upper', one.path) };
}

function jsonOf(one: ListedPath, content: string, lines: readonly string[]): unknown {
  const { shown, kind, renamedFrom, upper, lower } = one;
  const side = (value: ListedPath['upper']) =>
    value && { type: value.type, mode: value.mode, size: value.size };
  return {
    path: shown,
    kind,
    ...(renamedFrom !== undefined && { renamedFrom }),
    content,
    diff: content === 'text' ? Buffer.from(`${lines.join('\n')}\n`, 'latin1').toString('utf8') : null,
    upper: side(upper),
    lower: side(lower),
  };
}

export async function log(options: LookOptions & { follow?: true }, cwd: string): Promise<void> {
  const window = await findWindow(options.window, cwd);
  const follow = options.follow ?? false;
  const onPart = (part: unknown) => {
    const lines = (part as LogEntry[]).map(options.json ? jsonLine : logLine);
    print(lines.join(''));
  };
  try {
    await request(window.id, 'log', { follow }, { onPart, ...(follow && { patience: 0 }) });
  } catch (error) {
    if (!(follow && error instanceof WindowGone)) throw error;
  }
}

function jsonLine({ at, last, ...entry }: LogEntry): string {
  const times = { at: new Date(at).toISOString(), last: new Date(last).toISOString() };
  return `${JSON.stringify({ ...times, ...entry })}\n`;
}

const COLOURS = {
  create: 'green',
  write: 'yellow',
  change: 'yellow',
  rename: 'cyan',
  delete: 'red',
  keep: 'blue',
} as const;

function logLine({ at, operation, path, renamedFrom, pid, command, bytes, count }: LogEntry): string {
  const what = operation.padEnd(6);
  const shown =
    process.stdout.isTTY && process.stdout.hasColors() ? styleText(COLOURS[operation], what) : what;
  const size = operation === 'write' || operation === 'keep' ? `  ${bytes} bytes` : '';
  const times = count > 1 ? ` in ${count} writes` : '';
  const from = renamedFrom === undefined ? '' : `  from ${printable(renamedFrom)}`;
  const by = pid > 0 ? `${printable(command)} ${pid}` : 'forget';
  return `${clock(at)}  ${shown}  ${printable(path)}${from}${size}${operation === 'write' ? times : ''}  (${by})\n`;
}

/** The time of day here, to the millisecond. */
function clock(ms: number): string {
  const date = new Date(ms);
  const two = (value: number) => String(value).padStart(2, '0');
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':');
  return `${time}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

/** False where the workspace has changed, and nothing was kept. */
export async function keep(
  globs: string[],
  options: LookOptions & { force?: true; dryRun?: true },
  cwd: string,
): Promise<boolean> {
  const { force = false, dryRun = false } = options;
  const window = await findWindow(options.window, cwd);
  // A large file takes as long as the disk does.
  const { kept, conflicts } = await request(window.id, 'keep', { globs, force, dryRun }, { patience: 0 });
  if (options.json) printJson({ kept, conflicts });
  else {
    for (const { path, kind, type, size } of kept) {
      const what = kind === 'deleted' ? 'deleted' : type === 'file' ? sizeText(size) : `a ${type}`;
      print(`${dryRun ? 'would keep' : 'kept'} ${printable(path)}  ${what}\n`);
    }
    sayConflicts(conflicts, dryRun);
  }
  return conflicts.length === 0;
}

function sayConflicts(conflicts: LookingMethods['keep']['result']['conflicts'], dryRun: boolean): void {
  if (conflicts.length === 0) return;
  const fate = dryRun ? 'this would be refused' : 'nothing was kept';
  say(`${fate}, since the workspace has changed meanwhile (--force keeps over it):`);
  for (const { path, why } of conflicts) process.stderr.write(`  ${printable(path)}  ${why}\n`);
}
