/**
 * The new files of a keep, made under their temporary names beside their places, and brought to the disk. While a file's
 * bytes are being copied nobody changes them: whoever wants to waits.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Deferred } from '../fuse/handler.ts';
import { scratchCstring } from '../sys/bytes.ts';
import { SysError } from '../sys/errno.ts';
import { close, errno, linkat } from '../sys/libc.ts';
import { Stat } from '../sys/stat.ts';
import { entryOf } from './bases.ts';
import { copyFileDown, finishDirectory, finishFile, makeDown } from './copy-down.ts';
import type { Step } from './keep-journal.ts';
import { failedAt, KeepError } from './keep-outcome.ts';
import type { Making, PlannedStep } from './keep-plan.ts';
import { openLowerDirectory, splitPath, withLowerDirectory } from './lower-path.ts';
import type { Node } from './node.ts';
import { kernelHasFineTimes } from './outside-changes.ts';
import type { Overlay } from './overlay.ts';

const LOCK_POLL_MS = 5;
const LOCKS_WITHIN_MS = 5000;
/** A tick of the clock that files' times are taken from (CONFIG_HZ is 100 at the least). */
const TICK_MS = 11;

export class KeptFiles {
  /** The upper's ctime of each node when it was copied. */
  readonly copied = new Map<Node, number>();
  private readonly o: Overlay;
  private readonly steps: readonly PlannedStep[];
  /** Throws when whoever asked is gone. */
  private readonly checkAborted: () => void;
  private readonly waiting = new Map<Node, Deferred[]>();

  constructor(o: Overlay, steps: readonly PlannedStep[], checkAborted: () => void) {
    this.o = o;
    this.steps = steps;
    this.checkAborted = checkAborted;
  }

  /** Throws where that cannot be; what is there then goes with the journal. */
  async make(): Promise<void> {
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
        const finish = await this.makeOne(step, making);
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
  private async makeOne(step: PlannedStep, making: Making): Promise<(() => Promise<number>) | undefined> {
    const { o } = this;
    const { node } = making;
    const [directory, name] = temporaryOf(step, making);
    if (!node.inUpper) throw new KeepError(`${o.ledger.shown(making.path)} has changed meanwhile; try again`);
    // An own descriptor: between here and the end of a large copy the walk's own are closed.
    const dir = openLowerDirectory(o, directory);
    if (dir < 0) throw failedAt(o, making.path, -dir);
    try {
      if (!node.isRegular) {
        const error = makeDown(o, node, dir, name);
        if (error) throw failedAt(o, making.path, error);
        return undefined;
      }
      const copied = await copyFileDown(o, node, dir, name);
      if (typeof copied === 'number') throw failedAt(o, making.path, -copied);
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
    if (error) throw failedAt(this.o, making.path, error);
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
        if (error) throw failedAt(o, making.path, error);
      }
    }
  }
}

/** Where something is while it is prepared: a directory of the lower, and a name. */
function temporaryOf(step: Step, making: Making): [directory: string, name: string] {
  const base = step.directory === '' ? step.temporary : `${step.directory}/${step.temporary}`;
  return splitPath(making.below === '' ? base : `${base}/${making.below}`);
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
