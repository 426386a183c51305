/**
 * Windows that open and close on a mount while processes run in it. State: which are open, by name; the stack of each
 * root's overlay holds what they caught.
 *
 * The kernel's page cache is the trap. What a process has stored through a shared mapping is a dirty page there, and
 * nobody knows of it before the kernel writes it back. So that no byte crosses the line of a window:
 *
 * - Before a window opens, and before one closes, the kernel is asked to write back and drop the pages of every file in
 *   question (INVAL_INODE; the message is answered when that is done): what was stored until then belongs to what was
 *   on top until then.
 * - The change itself happens between two requests, in all roots at once.
 * - After a close the pages are asked for again. Until that is done, what the kernel writes back of those files may be
 *   the closed window's bytes: it is taken and thrown away (Overlay.discarding).
 *
 * A store in the milliseconds in between goes with the closed window. The messages are written by threads, since the
 * kernel may have to wait for a request that this process owes; so both are asynchronous, and one waits for the other.
 */
import { WindowStack } from '../overlay/window-stack.ts';
import { type EscapeSearch, NOT_SEARCHED } from './escapes/escape.ts';
import { Failure } from './failure.ts';
import type { Server, WindowState } from './server.ts';
import { joinStates } from './state.ts';

export interface OpenWindow {
  name: string;
  opened: Date;
}

export interface ClosedWindow extends OpenWindow {
  closed: Date;
  state: WindowState;
  look: EscapeSearch;
}

interface Entry extends OpenWindow {
  number: number;
  /** Of the whole mount, when it opened. */
  requests: Record<string, number>;
  notifications: number;
}

const LONGEST_NAME = 64;

export class LiveWindows {
  private readonly servers: readonly Server[];
  private readonly stacks: readonly WindowStack[];
  /** The outermost first. */
  private readonly entries: Entry[] = [];
  private lastNumber = 1;
  /** The last number that was a name. */
  private lastName = 0;
  private queue: Promise<unknown> = Promise.resolve();

  /** The servers of one mount's roots, with the window that was opened at their start. */
  constructor(servers: readonly Server[], first: OpenWindow) {
    this.servers = servers;
    this.stacks = servers.map((server) => {
      const stack = new WindowStack(server.overlay);
      server.ledgers = (window) => stack.ledgers(window);
      return stack;
    });
    this.entries.push({ ...first, number: 1, requests: {}, notifications: 0 });
    this.lastName = first.name === '1' ? 1 : 0;
  }

  list(): OpenWindow[] {
    return this.entries.map(({ name, opened }) => ({ name, opened }));
  }

  /** Opens a window over those there are, and returns its name. Throws a Failure for a name that cannot be. */
  open(name: string | undefined): Promise<OpenWindow> {
    return this.inTurn(async () => {
      const wanted = name ?? this.freeName();
      this.refuseName(wanted);
      await this.writeBack();
      const number = ++this.lastNumber;
      const { requests, notifications } = this.total();
      for (const stack of this.stacks) stack.open(number);
      await this.told();
      const entry: Entry = { name: wanted, opened: new Date(), number, requests, notifications };
      this.entries.push(entry);
      return entry;
    });
  }

  /** Closes the window of this name, or the one on top. Throws a Failure when there is none. */
  close(name: string | undefined): Promise<ClosedWindow> {
    return this.inTurn(async () => {
      const entry = name === undefined ? this.entries.at(-1) : this.entries.find((one) => one.name === name);
      if (!entry) throw new Failure(this.whyNone(name));
      const look = await this.lookFor(entry);
      await this.writeBack();
      // What it held is counted before it goes; what is moved at the close, after.
      const { upper, requests, notifications } = this.total();
      const accounts = this.servers.map((server) => server.account(entry.number));
      for (const stack of this.stacks) stack.close(entry.number);
      this.entries.splice(this.entries.indexOf(entry), 1);
      for (const stack of this.stacks) stack.invalidate();
      await this.told();
      for (const { overlay } of this.servers) overlay.discarding = null;
      const state = joinStates(accounts.map((account) => account()));
      return {
        ...entry,
        closed: new Date(),
        look,
        state: {
          ...state,
          upper,
          requests: difference(requests, entry.requests),
          notifications: notifications - entry.notifications,
        },
      };
    });
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.queue.then(work);
    this.queue = turn.catch(() => {});
    return turn;
  }

  /** For what the window could not catch, while it still holds what it caught. Whoever works in it goes on meanwhile. */
  private async lookFor({ number, opened }: Entry): Promise<EscapeSearch> {
    const caught = this.servers.some((server) => server.ledgers(number).some((ledger) => !ledger.isEmpty));
    if (!caught) return NOT_SEARCHED;
    const { findEscapes } = await import('./escapes/find-escapes.ts');
    return findEscapes(
      this.servers.map(({ overlay }) => overlay),
      opened.getTime(),
      [],
    );
  }

  private async writeBack(): Promise<void> {
    for (const stack of this.stacks) stack.invalidate();
    await this.told();
  }

  private async told(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.kernelTold()));
  }

  private total(): WindowState {
    return joinStates(this.servers.map((server) => server.state()));
  }

  private freeName(): string {
    do this.lastName++;
    while (this.entries.some(({ name }) => name === String(this.lastName)));
    return String(this.lastName);
  }

  private refuseName(name: string): void {
    if (name === '' || name.length > LONGEST_NAME || !/^[\p{L}\p{N}][\p{L}\p{N} ._:@+-]*$/u.test(name)) {
      throw new Failure(
        `${JSON.stringify(name)} cannot be a window's name: use letters, digits and ". _ : @ + -", at most ${LONGEST_NAME}`,
      );
    }
    if (this.entries.some((one) => one.name === name)) {
      throw new Failure(`a window named ${name} is open already; "forget close --name ${name}" closes it`);
    }
  }

  private whyNone(name: string | undefined): string {
    if (this.entries.length === 0) return 'no window is open; "forget open" opens one';
    const open = this.entries.map((one) => one.name).join(', ');
    return `no window named ${name} is open; those that are: ${open}`;
  }
}

function difference(now: Record<string, number>, before: Record<string, number>): Record<string, number> {
  const out: Record<string, number> = {};
  for (const [name, count] of Object.entries(now)) {
    const since = count - (before[name] ?? 0);
    if (since > 0) out[name] = since;
  }
  return out;
}
