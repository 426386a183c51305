/**
 * The windows of one view, one over the other: with each, the state that it was opened over. What is written to
 * protected paths belongs to the one on top (Overlay.window). To open one freezes what the upper holds, since whoever
 * wants to change a frozen object makes a copy first (copy-up.ts); to close the one on top restores the state under it.
 * One further down goes by a rebase of those above it (window-rebase.ts).
 *
 * All in here happens between two requests. Dirty pages of shared mappings are the caller's to see to
 * (window/live-windows.ts): `mayBeDirty` and `Overlay.discarding`.
 */
import { S_IFLNK } from '../sys/constants.ts';
import { releaseAllHeld } from './held.ts';
import { Ledger } from './ledger.ts';
import { eachLowerEntry } from './listing.ts';
import type { Node } from './node.ts';
import type { Born } from './node-table.ts';
import type { Overlay } from './overlay.ts';
import { rebase } from './window-rebase.ts';
import { restore } from './window-restore.ts';
import {
  capture,
  emptyState,
  objectsOf,
  pin,
  replaceDead,
  type State,
  unpin,
  versionsOf,
} from './window-state.ts';

interface Opened {
  /** Its number, which no other window of this view has ever had. */
  window: number;
  /** What it was opened over. */
  under: State;
  /** Files created in the lower between the opening of the window below and of this one. */
  bornUnder: Born;
  ledger: Ledger;
}

/** Each window has its own account; the log is the view's. */
function newLedger({ ledger }: Overlay): Ledger {
  const made = new Ledger(ledger.shown, ledger.log);
  made.ignored = ledger.ignored;
  return made;
}

export class WindowStack {
  private readonly o: Overlay;
  /** The outermost first. */
  private readonly opened: Opened[] = [];
  /** What happens while none is open. */
  private readonly idle: Ledger;

  /** With the window that the view was made with, if it was. */
  constructor(o: Overlay) {
    this.o = o;
    this.idle = newLedger(o);
    if (o.window !== 0) {
      this.opened.push({ window: o.window, under: emptyState(), bornUnder: new Map(), ledger: o.ledger });
    }
  }

  /** Opens a window over those there are. `window` is a number that none of this view has had. */
  open(window: number): void {
    const { o } = this;
    o.identity.actAsServer();
    const ledger = newLedger(o);
    const under = capture(o);
    pin(under);
    this.opened.push({ window, under, bornUnder: o.table.takeBorn(), ledger });
    if (this.opened.length === 1) {
      o.beginAnew();
      this.judgeAll();
    }
    this.setTop();
    if (o.hide) this.tellHidden();
  }

  /** Closes the window of this number. Until the kernel has dropped what it may hold of it, `discarding` is set. */
  close(window: number): void {
    const { o } = this;
    o.identity.actAsServer();
    const at = this.opened.findIndex((one) => one.window === window);
    const closed = this.opened[at]!;
    const hid = o.hide;
    if (this.opened.length === 1) releaseAllHeld(o);
    for (const { under } of this.opened) replaceDead(o, under);
    const dirty = new Set(this.mayBeDirty());
    const before = capture(o);
    const had = this.objects(before);
    const above = this.opened.slice(at + 1);
    const old = new Set([closed, ...above].flatMap(({ under }) => [...versionsOf(under).keys()]));
    let target = closed.under;
    if (above.length > 0) {
      const states = [...above.slice(1).map(({ under }) => under), before];
      const rebased = rebase(o, {
        base: above[0]!.under,
        onto: closed.under,
        states,
        closed: window,
        heir: above[0]!.window,
      });
      target = rebased.pop()!;
      for (const [i, one] of above.entries()) {
        unpin(one.under);
        one.under = i === 0 ? closed.under : rebased[i - 1]!;
        if (i > 0) pin(one.under);
      }
    } else unpin(closed.under);
    this.opened.splice(at, 1);
    this.giveBorn(closed, above);
    this.setTop();
    const has = this.objects(target);
    for (const [object, isDirectory] of had) if (!has.has(object)) o.upper.remove(object, isDirectory);
    restore(o, before, target);
    for (const node of old) o.dropIdle(node);
    if (this.opened.length === 0) {
      o.beginAnew();
      this.judgeAll();
    }
    if (hid && !o.hide) this.tellHidden();
    // What the window on top has of its own, it keeps.
    for (const node of dirty) if (above.length > 0 && o.owns(node)) dirty.delete(node);
    o.discarding = dirty;
  }

  /** The accounts of the windows that are open, or of one of them. */
  ledgers(window?: number): Ledger[] {
    return this.opened
      .filter((one) => window === undefined || one.window === window)
      .map(({ ledger }) => ledger);
  }

  /** Files of which the kernel may hold pages that were written through a mapping, and not told of yet. */
  *mayBeDirty(): Generator<Node> {
    for (const node of this.o.table.all()) {
      if (node.isRegular && node.lookups > 0 && (node.protected || node.inUpper)) yield node;
    }
  }

  /** Has the kernel write back and drop the pages of those files, and the targets of protected symlinks. */
  invalidate(): void {
    const { notifier, table } = this.o;
    for (const node of this.mayBeDirty()) notifier.inode(node.id);
    for (const node of table.all()) {
      if (node.type === S_IFLNK && node.protected && node.lookups > 0) notifier.inode(node.id);
    }
    notifier.flush();
  }

  private setTop(): void {
    const { o } = this;
    const top = this.opened.at(-1);
    o.window = top?.window ?? 0;
    o.ledger = top?.ledger ?? this.idle;
    o.nested = this.opened.length > 1;
    o.frozen = this.opened.map(({ under }) => under);
    for (const node of o.table.all()) if (node.held) node.owner = o.window;
  }

  /** What was created in the lower while the closed window was open was created in the one below it as well. */
  private giveBorn(closed: Opened, above: Opened[]): void {
    const { table } = this.o;
    const next = above[0];
    if (next) next.bornUnder = new Map([...closed.bornUnder, ...next.bornUnder]);
    else {
      const born = table.takeBorn();
      table.setBorn(this.opened.length === 0 ? new Map() : new Map([...closed.bornUnder, ...born]));
    }
  }

  private objects(live: State): Map<number, boolean> {
    const out = objectsOf(live);
    for (const { under } of this.opened)
      for (const [object, isDirectory] of objectsOf(under)) out.set(object, isDirectory);
    return out;
  }

  /** While nothing is protected, files come to names and leave them without anybody judging. */
  private judgeAll(): void {
    const { o } = this;
    for (const node of o.table.all()) {
      if (!node.protected || node.inUpper) continue;
      o.judge(node);
      // Opened so that a read moves the access time.
      if (node.protected && node.isRegular && node.link) o.descriptors.release(node);
    }
  }

  /** Protected names of the lower come and go with the windows. */
  private tellHidden(): void {
    const { notifier, table } = this.o;
    for (const dir of table.all()) {
      if (!dir.isDirectory || dir.lookups === 0 || !dir.hasLower) continue;
      notifier.inode(dir.id);
      for (const [name, kid] of dir.kids ?? []) {
        if ('protected' in kid && kid.protected) notifier.entry(dir.id, name, kid.isDirectory);
      }
      if (!dir.absences) continue;
      eachLowerEntry(this.o, dir, (name) => {
        if (!dir.kid(name) && this.o.wouldProtectName(dir, name)) notifier.entry(dir.id, name, false);
      });
    }
    notifier.flush();
  }
}
