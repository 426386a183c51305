/**
 * Keeping: chosen paths of a window go to the lower, all or none of them. First everything is made beside its place under
 * temporary names, and is on the disk; then each takes its place by a rename, in one go, the originals staying aside; then
 * the originals go. What happens if that is cut off is in keep-journal.ts.
 *
 * The window goes on as before: what was kept stays in the upper and covers the lower, so that the view does not change,
 * and what is written to it afterwards is caught as ever.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Deferred } from '../fuse/handler.ts';
import { scratchCstring } from '../sys/bytes.ts';
import {
  AT_SYMLINK_NOFOLLOW,
  O_CLOEXEC,
  O_DIRECTORY,
  O_RDONLY,
  S_IFDIR,
  S_IFLNK,
  S_IFMT,
  S_IFREG,
} from '../sys/constants.ts';
import { EAGAIN, EEXIST, ENOENT, ENOSPC, errnoName, SysError } from '../sys/errno.ts';
import { close, errno, fchmodat, fchownat, fsync, linkat, openat } from '../sys/libc.ts';
import { slowly } from '../sys/pool.ts';
import { Stat } from '../sys/stat.ts';
import { entryOf, type LowerEntry, noteBase } from './bases.ts';
import { type Change, inView, lowerEntryAt } from './changes.ts';
import { copyFileDown, finishDirectory, finishFile, makeDown } from './copy-down.ts';
import {
  clearStep,
  doStep,
  lockKeeping,
  recoverKeep,
  removeJournal,
  type Stage,
  type Step,
  settle,
  undoStep,
  writeJournal,
} from './keep-journal.ts';
import { JOURNAL, NEXT_JOURNAL } from './keep-names.ts';
import { type Conflict, chooseChanges, type Making, type PlannedStep, planFor } from './keep-plan.ts';
import { splitPath, withLowerDirectory } from './lower-path.ts';
import { Node, OWN_NAME, Whiteout } from './node.ts';
import { kernelHasFineTimes } from './outside-changes.ts';
import type { Overlay } from './overlay.ts';

/** A root of the window, and which of its paths (byte strings) are to be kept. */
export interface KeepPart {
  overlay: Overlay;
  wanted: (path: string) => boolean;
}

export interface KeepOptions {
  /** Over what was changed outside. */
  force: boolean;
  /** Only say what would be done. */
  dryRun: boolean;
  /** Whoever asked is gone: nothing is kept, unless it is done already. */
  signal?: AbortSignal;
}

/** One path that was kept. Names are made readable. */
export interface KeptPath {
  path: string;
  kind: Change['kind'];
  type: FileType;
  /** Bytes of a regular file. */
  size: number;
}

export type FileType = 'file' | 'directory' | 'symlink' | 'other';

export interface KeepOutcome {
  kept: KeptPath[];
  /** Not empty: nothing was kept. */
  conflicts: Conflict[];
}

/** It cannot be done, and nothing was. The message is a line for the person. */
export class KeepError extends Error {}

export function typeName(type: number): FileType {
  const names: Record<number, FileType> = { [S_IFREG]: 'file', [S_IFDIR]: 'directory', [S_IFLNK]: 'symlink' };
  return names[type & S_IFMT] ?? 'other';
}

/** Throws KeepError with nothing kept. */
export async function keep(parts: readonly KeepPart[], options: KeepOptions): Promise<KeepOutcome> {
  const plans = parts.map(({ overlay, wanted }) => {
    const { all, chosen } = chooseChanges(overlay, wanted);
    return { overlay, chosen, ...planFor(overlay, all, chosen) };
  });
  const kept = plans.flatMap(({ overlay, chosen }) => chosen.map((change) => keptPath(overlay, change)));
  const conflicts = plans.flatMap((plan) => plan.conflicts);
  if (options.dryRun) return { kept, conflicts };
  if (conflicts.length > 0 && !options.force) return { kept: [], conflicts };
  const impossible = plans.flatMap((plan) => plan.impossible);
  if (impossible.length > 0) return { kept: [], conflicts: impossible };
  const keepings = plans
    .filter(({ steps }) => steps.length > 0)
    .map(({ overlay, steps, chosen }) => new Keeping(overlay, steps, chosen, options.signal));
  await keepAll(keepings);
  return { kept, conflicts: [] };
}

/** In all roots or in none. */
async function keepAll(keepings: readonly Keeping[]): Promise<void> {
  const begun: Keeping[] = [];
  try {
    for (const keeping of keepings) {
      begun.push(keeping);
      await keeping.prepare();
    }
    for (const keeping of keepings) keeping.commit();
    for (const keeping of keepings) await keeping.seal();
  } catch (error) {
    const left = begun.map((keeping) => keeping.takeBack()).find((failed) => failed !== 0);
    if (left) {
      const why = `${(error as Error).message}; and what was begun could not be taken back (${errnoName(left)})`;
      throw new KeepError(`${why}: forget doctor --fix tries again`);
    }
    throw explained(error);
  }
  for (const keeping of keepings) keeping.finish();
}

function keptPath(o: Overlay, { path, kind, type, node }: Change): KeptPath {
  const st = new Stat();
  const isFile = node?.isRegular && st.at(o.upper.fd, o.upper.name(node.upper)) === 0;
  return { path: o.ledger.shown(path), kind, type: typeName(type), size: isFile ? st.size : 0 };
}

/** While a node's bytes are being copied nobody else changes them. */
const LOCK_POLL_MS = 5;
const LOCKS_WITHIN_MS = 5000;
/** A tick of the clock that files' times are taken from (CONFIG_HZ is 100 at the least). */
const TICK_MS = 11;

class Keeping {
  private readonly o: Overlay;
  private readonly steps: PlannedStep[];
  private readonly chosen: readonly Change[];
  private readonly signal: AbortSignal | undefined;
  private readonly waiting = new Map<Node, Deferred[]>();
  /** The upper's ctime of each node when it was copied. */
  private readonly copied = new Map<Node, number>();
  /** Names that the view must not show, by the directory they are in. */
  private readonly hidden: { parent: Node; name: string }[] = [];
  private lock = -1;
  /** What the journal says; undefined before there is one. */
  private stage: Stage | undefined;

  constructor(o: Overlay, steps: PlannedStep[], chosen: readonly Change[], signal: AbortSignal | undefined) {
    this.o = o;
    this.steps = steps;
    this.chosen = chosen;
    this.signal = signal;
  }

  /** All new files, under their temporary names, on the disk. Whatever happens, `takeBack` or `finish` comes after it. */
  async prepare(): Promise<void> {
    const { o } = this;
    o.identity.actAsServer();
    this.lockRoot();
    if (entryOf(o.lowerFd, JOURNAL)) this.clearOlder();
    this.hideTemporaries();
    await this.journal('prepare');
    await this.makeNew();
    await this.journal('commit');
  }

  private lockRoot(): void {
    this.lock = lockKeeping(this.o.lowerFd);
    if (this.lock === -EAGAIN) throw new KeepError('another keep is under way in this workspace; try again');
    if (this.lock < 0) throw new SysError(-this.lock, 'the workspace');
  }

  /** What a keep left that was cut off, whose lock is free by now. */
  private clearOlder(): void {
    close(this.lock);
    recoverKeep(this.o.lowerFd);
    this.lockRoot();
  }

  private async journal(stage: Stage): Promise<void> {
    this.o.identity.actAsServer();
    const steps = this.steps.map(({ makings: _, change: __, ...step }): Step => step);
    await writeJournal(this.o.lowerFd, this.lock, { version: 1, stage, steps });
    this.stage = stage;
  }

  /** To the disk, and from then on it is done. */
  async seal(): Promise<void> {
    await this.syncDirectories();
    this.checkAborted();
    await this.journal('clean');
  }

  /** Nothing of it stays. Returns 0, or the errno of what could not be taken back. */
  takeBack(): number {
    const { o, stage } = this;
    o.identity.actAsServer();
    // Another root's part failed after this one was sealed: its steps can still be taken back.
    const done = stage === 'clean' ? 'commit' : stage;
    const error = stage ? settle(o.lowerFd, { version: 1, stage: done!, steps: this.steps }) : 0;
    if (!error && this.lock >= 0) removeJournal(o.lowerFd);
    this.release();
    return error;
  }

  /** It is done: the window's own state follows, and the originals go. */
  finish(): void {
    const { o } = this;
    this.follow();
    o.identity.actAsServer();
    for (const step of this.steps) clearStep(o.lowerFd, step);
    removeJournal(o.lowerFd);
    this.release();
  }

  private release(): void {
    if (this.lock >= 0) close(this.lock);
    this.show();
  }

  private failed(path: string, error: number): SysError {
    return new SysError(error, path === '' ? 'the workspace' : this.o.ledger.shown(path));
  }

  private checkAborted(): void {
    if (this.signal?.aborted) throw new KeepError('interrupted; nothing was kept');
  }

  /** The temporary names are in the lower, and nobody's business. */
  private hideTemporaries(): void {
    const { o } = this;
    const hide = (directory: string, name: string) => {
      const parent = directory === '' ? o.root : inView(o, directory);
      if (!(parent instanceof Node) || !parent.hasLower || parent.kid(name)) return;
      parent.kids ??= new Map();
      parent.kids.set(name, OWN_NAME);
      this.hidden.push({ parent, name });
    };
    for (const name of [JOURNAL, NEXT_JOURNAL]) hide('', name);
    for (const { directory, temporary } of this.steps) {
      hide(directory, temporary);
      hide(directory, `${temporary}.x`);
    }
  }

  private show(): void {
    for (const { parent, name } of this.hidden) {
      if (parent.kid(name) === OWN_NAME) parent.kids!.delete(name);
      this.o.dropIdle(parent);
    }
  }

  private async makeNew(): Promise<void> {
    const { o } = this;
    const nodes = new Set(this.steps.flatMap(({ makings }) => makings.map(({ node }) => node)));
    const files = [...nodes].filter((node) => node.isRegular);
    await this.lockNodes(files);
    const unfinished: (() => Promise<number>)[] = [];
    try {
      await this.makeAll(unfinished);
      // An older kernel may give a change that follows at once the same ctime.
      if (!kernelHasFineTimes()) await sleep(TICK_MS);
    } catch (error) {
      await inTurns(unfinished);
      throw error;
    } finally {
      this.unlockNodes();
    }
    const failed = (await inTurns(unfinished)).find((error) => error !== 0);
    if (failed) throw new SysError(failed, 'writing to the workspace');
    await this.finishDirectories();
    this.checkAborted();
    for (const step of this.steps) {
      if (step.kind !== 'put' && step.kind !== 'swap') continue;
      step.ino = withLowerDirectory(
        o.lowerFd,
        step.directory,
        (dir) => entryOf(dir, step.temporary)?.ino ?? 0,
      );
      if (step.ino === 0) throw new KeepError('a temporary file went away; nothing was kept');
    }
  }

  /** `unfinished` is what has still to be done for regular files, and closes their descriptors. */
  private async makeAll(unfinished: (() => Promise<number>)[]): Promise<void> {
    const first = new Map<Node, { step: PlannedStep; making: Making }>();
    for (const step of this.steps) {
      if (step.kind === 'attributes') continue;
      for (const making of step.makings) {
        this.checkAborted();
        const known = first.get(making.node);
        if (known) {
          this.link(known, step, making);
          continue;
        }
        const finish = await this.make(step, making);
        if (finish) unfinished.push(finish);
        if (!making.node.isDirectory) first.set(making.node, { step, making });
      }
    }
  }

  private async lockNodes(files: readonly Node[]): Promise<void> {
    for (let waited = 0; files.some((node) => node.waiting); waited += LOCK_POLL_MS) {
      if (waited > LOCKS_WITHIN_MS) throw new KeepError('a file is being written all the time; try again');
      await sleep(LOCK_POLL_MS);
      this.checkAborted();
    }
    const st = new Stat();
    for (const node of files) {
      const waiting: Deferred[] = [];
      node.waiting = waiting;
      this.waiting.set(node, waiting);
      if (st.at(this.o.upper.fd, this.o.upper.name(node.upper)) === 0) this.copied.set(node, st.change);
    }
  }

  private unlockNodes(): void {
    for (const [node, waiting] of this.waiting) {
      node.waiting = null;
      this.o.engine.replay(waiting);
      this.o.dropIdle(node);
    }
    this.waiting.clear();
  }

  /** Returns what has still to be done for a regular file. */
  private async make(step: PlannedStep, making: Making): Promise<(() => Promise<number>) | undefined> {
    const { o } = this;
    const { node } = making;
    const [directory, name] = temporaryOf(step, making);
    if (!node.inUpper) throw new KeepError(`${o.ledger.shown(making.path)} has changed meanwhile; try again`);
    // An own descriptor: between here and the end of a large copy the walk's own are closed.
    const dir = openLowerDirectory(o, directory);
    if (dir < 0) throw this.failed(making.path, -dir);
    try {
      if (!node.isRegular) {
        const error = makeDown(o, node, dir, name);
        if (error) throw this.failed(making.path, error);
        return undefined;
      }
      const copied = await copyFileDown(o, node, dir, name);
      if (typeof copied === 'number') throw this.failed(making.path, -copied);
      return () => finishFile(o, node, copied);
    } finally {
      close(dir);
    }
  }

  /** A further name of a file that is made already. */
  private link(known: { step: PlannedStep; making: Making }, step: PlannedStep, making: Making): void {
    const root = this.o.lowerFd;
    const [fromDirectory, from] = temporaryOf(known.step, known.making);
    const [toDirectory, to] = temporaryOf(step, making);
    this.o.identity.actAsServer();
    const error = withLowerDirectory(root, fromDirectory, (a) =>
      withLowerDirectory(root, toDirectory, (b) => {
        if (a < 0 || b < 0) return a < 0 ? -a : -b;
        return linkat(a, scratchCstring(from, 0), b, scratchCstring(to, 1), 0) < 0 ? errno() : 0;
      }),
    );
    if (error) throw this.failed(making.path, error);
  }

  /** Directories get their attributes when everything is in them, the innermost first. */
  private async finishDirectories(): Promise<void> {
    const { o } = this;
    for (const step of this.steps) {
      if (step.kind === 'attributes') continue;
      for (const making of step.makings.toReversed()) {
        if (!making.node.isDirectory) continue;
        const [directory, name] = temporaryOf(step, making);
        const dir = openLowerDirectory(o, directory);
        const error = dir < 0 ? -dir : await finishDirectory(o, making.node, dir, name);
        if (dir >= 0) close(dir);
        if (error) throw this.failed(making.path, error);
      }
    }
  }

  /** All in one go, so that neither the view nor, but for a moment, the lower can change in between. */
  commit(): void {
    const { o } = this;
    this.checkAborted();
    for (const change of this.chosen) {
      const { path, node, lower } = change;
      const here = inView(o, path);
      const same = node ? here === node && node.inUpper : !(here instanceof Node && here.inUpper);
      if (!same) throw new KeepError(`${o.ledger.shown(path)} has changed meanwhile; try again`);
      const now = lowerEntryAt(o, path);
      if (now?.ino !== lower?.ino || (lower && now && !isSame(change, now))) {
        throw new KeepError(`${o.ledger.shown(path)} was changed outside meanwhile; try again`);
      }
    }
    o.identity.actAsServer();
    const done: PlannedStep[] = [];
    for (const step of this.steps) {
      const error = step.kind === 'attributes' ? this.changeAttributes(step) : doStep(o.lowerFd, step);
      if (!error) {
        done.push(step);
        continue;
      }
      for (const one of [step, ...done.toReversed()]) undoStep(o.lowerFd, one);
      const path = step.directory === '' ? step.name : `${step.directory}/${step.name}`;
      if (error === EEXIST || error === ENOENT) {
        throw new KeepError(`${o.ledger.shown(path)} was changed outside meanwhile; try again`);
      }
      throw this.failed(path, error);
    }
  }

  private changeAttributes(step: PlannedStep): number {
    const { o } = this;
    const st = new Stat();
    const error = st.at(o.upper.fd, o.upper.name(step.makings[0]!.node.upper));
    if (error) return error;
    return withLowerDirectory(o.lowerFd, step.directory, (dir) => {
      if (dir < 0) return -dir;
      const name = scratchCstring(step.name);
      const { uid, gid } = step.before!;
      const owned = st.uid === uid && st.gid === o.identity.shownGroup(gid);
      if (!owned && fchownat(dir, name, st.uid, st.gid, AT_SYMLINK_NOFOLLOW) < 0) return errno();
      return fchmodat(dir, name, st.mode & 0o7777, 0) < 0 ? errno() : 0;
    });
  }

  private async syncDirectories(): Promise<void> {
    const directories = new Set(this.steps.map(({ directory }) => directory));
    for (const directory of directories) {
      const dir = openLowerDirectory(this.o, directory);
      if (dir < 0) throw this.failed(directory, -dir);
      const { result, error } = await slowly(fsync, [dir]);
      close(dir);
      if (result < 0) throw this.failed(directory, error);
    }
  }

  /** The window's own state after it: what was kept covers what is in the lower now. */
  private follow(): void {
    const { o } = this;
    for (const step of this.steps) {
      for (const { path, node } of step.makings) this.followMade(path, node);
    }
    for (const change of this.chosen) {
      const { path, kind, lower } = change;
      o.ledger.noteKept(path, kind, typeName(change.type), keptPath(o, change).size);
      const [directory, name] = splitPath(path);
      const parent = directory === '' ? o.root : inView(o, directory);
      if (parent instanceof Node && lower) o.table.noteReplaced(lower.ino, parent, name);
      if (kind === 'deleted' && parent instanceof Node && parent.kid(name) instanceof Whiteout) {
        parent.kids!.delete(name);
        parent.bases?.delete(name);
        parent.hiddenSubdirectories?.delete(name);
        o.dropIdle(parent);
      }
    }
  }

  private followMade(path: string, node: Node): void {
    const { o } = this;
    const [directory, name] = splitPath(path);
    const parent = directory === '' ? o.root : inView(o, directory);
    // It was renamed or replaced in the last milliseconds: what stands there now covers the lower as anything does.
    if (!(parent instanceof Node) || parent.kid(name) !== node) return;
    const st = new Stat();
    const error = withLowerDirectory(o.lowerFd, directory, (dir) =>
      dir < 0 ? -dir : st.at(dir, scratchCstring(name)),
    );
    if (error) return;
    noteBase(parent, name, st);
    parent.hiddenSubdirectories?.delete(name);
    if (node.isDirectory) {
      if (!node.hasLower) {
        o.table.identify(node, st);
        node.gainLower();
      }
      return;
    }
    node.kept = this.copied.get(node) ?? 0;
    if (!node.isRegular) node.kept = changeOf(o, node);
    // Its other names, if it has any, lead to the file that it was copied from.
    const whole = node.unseenNames === 0 && st.nlink === node.linkCount;
    if (whole) {
      o.table.noteGone(node);
      o.table.identify(node, st);
    }
  }
}

function changeOf(o: Overlay, node: Node): number {
  const st = new Stat();
  return st.at(o.upper.fd, o.upper.name(node.upper)) === 0 ? st.change : 0;
}

/** A directory that stays has had temporary names in it; one that goes must not have got anything new. */
function isSame({ node, lower }: Change, now: LowerEntry): boolean {
  return node?.isDirectory || now.change === lower!.change;
}

/** Where something is while it is prepared: a directory of the lower, and a name. */
function temporaryOf(step: Step, making: Making): [directory: string, name: string] {
  const base = step.directory === '' ? step.temporary : `${step.directory}/${step.temporary}`;
  return splitPath(making.below === '' ? base : `${base}/${making.below}`);
}

/** A readable descriptor of a lower directory, to be closed by the caller; or -errno. */
function openLowerDirectory(o: Overlay, path: string): number {
  o.identity.actAsServer();
  return withLowerDirectory(o.lowerFd, path, (dir) => {
    if (dir < 0) return dir;
    const fd = openat(dir, scratchCstring('.'), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    return fd < 0 ? -errno() : fd;
  });
}

/** How many files are brought to the disk at once. */
const AT_ONCE = 8;

/** All of them, a few at a time; their results. */
async function inTurns(tasks: readonly (() => Promise<number>)[]): Promise<number[]> {
  const results: number[] = [];
  let next = 0;
  const worker = async () => {
    while (next < tasks.length) results.push(await tasks[next++]!());
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}

function explained(error: unknown): unknown {
  if (!(error instanceof SysError)) return error;
  const why = error.errno === ENOSPC ? `${error.message} (the disk is full)` : error.message;
  return new KeepError(`${why}; nothing was kept`);
}
