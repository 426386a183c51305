/**
 * A keep of one root under way, from the first temporary file to the last original's end. State: the journal's stage, the
 * lock, the names that the view must not show meanwhile.
 */
import { scratchCstring } from '../sys/bytes.ts';
import { AT_SYMLINK_NOFOLLOW } from '../sys/constants.ts';
import { EAGAIN, EEXIST, ENOENT, SysError } from '../sys/errno.ts';
import { close, errno, fchmodat, fchownat, fsync } from '../sys/libc.ts';
import { slowly } from '../sys/pool.ts';
import { Stat } from '../sys/stat.ts';
import { entryOf, type LowerEntry } from './bases.ts';
import { type Change, inView, lowerEntryAt } from './changes.ts';
import { KeptFiles } from './keep-files.ts';
import { follow } from './keep-follow.ts';
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
import { failedAt, KeepError } from './keep-outcome.ts';
import type { PlannedStep } from './keep-plan.ts';
import { openLowerDirectory, withLowerDirectory } from './lower-path.ts';
import { Node, OWN_NAME } from './node.ts';
import type { Overlay } from './overlay.ts';

export class Keeping {
  private readonly o: Overlay;
  private readonly steps: PlannedStep[];
  private readonly chosen: readonly Change[];
  private readonly signal: AbortSignal | undefined;
  private readonly files: KeptFiles;
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
    this.files = new KeptFiles(o, steps, () => this.checkAborted());
  }

  /** All new files, under their temporary names, on the disk. Whatever happens, `takeBack` or `finish` comes after it. */
  async prepare(): Promise<void> {
    const { o } = this;
    o.identity.actAsServer();
    this.lockRoot();
    if (entryOf(o.lowerFd, JOURNAL)) this.clearOlder();
    this.hideTemporaries();
    await this.journal('prepare');
    await this.files.make();
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
    follow(o, this.steps, this.chosen, this.files.copied);
    o.identity.actAsServer();
    for (const step of this.steps) clearStep(o.lowerFd, step);
    removeJournal(o.lowerFd);
    this.release();
  }

  private release(): void {
    if (this.lock >= 0) close(this.lock);
    this.show();
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
      throw failedAt(o, path, error);
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
      if (dir < 0) throw failedAt(this.o, directory, -dir);
      const { result, error } = await slowly(fsync, [dir]);
      close(dir);
      if (result < 0) throw failedAt(this.o, directory, error);
    }
  }
}

/** A directory that stays has had temporary names in it; one that goes must not have got anything new. */
function isSame({ node, lower }: Change, now: LowerEntry): boolean {
  return node?.isDirectory || now.change === lower!.change;
}
