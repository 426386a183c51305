/**
 * Protected operations as they happened, for `forget log`. A program that writes a file in many small pieces makes one
 * entry of it: what the same program does to the same path within a second is one, unless something else happened to the
 * path in between.
 *
 * State: the last entries, and how many there have been.
 */
import type { PathRecord, Program } from './ledger.ts';

export type Operation = 'create' | 'write' | 'change' | 'rename' | 'delete' | 'keep';

export interface LogEntry {
  /** Counts from 1; where some are missing they came too fast to be kept. */
  number: number;
  /** Of its first operation and of its last: ms since the epoch. */
  at: number;
  last: number;
  operation: Operation;
  /** Names are made readable. */
  path: string;
  renamedFrom?: string;
  pid: number;
  command: string;
  /** Written, and by how many operations. */
  bytes: number;
  count: number;
}

const KEPT = 5000;
const MERGED_FOR_MS = 1000;
/** An entry that nothing was added to for so long is told. */
const QUIET_MS = 100;

export class OperationsLog {
  private readonly entries: LogEntry[] = [];
  private count = 0;
  /** Entries up to this one have been handed out, and stay as they are. */
  private told = 0;

  note(
    record: PathRecord,
    last: LogEntry | null,
    operation: Operation,
    bytes: number,
    { pid, command }: Program,
    now: number,
  ): LogEntry {
    if (
      last &&
      last.operation === operation &&
      last.pid === pid &&
      operation !== 'rename' &&
      last.number > this.told &&
      now - last.at < MERGED_FOR_MS
    ) {
      last.last = now;
      last.bytes += bytes;
      last.count++;
      return last;
    }
    const entry: LogEntry = {
      number: ++this.count,
      at: now,
      last: now,
      operation,
      path: record.path,
      pid,
      command,
      bytes,
      count: 1,
    };
    this.entries.push(entry);
    // Not one by one: a shift of a long array moves all of it.
    if (this.entries.length >= 2 * KEPT) this.entries.splice(0, this.entries.length - KEPT);
    return entry;
  }

  /**
   * The entries after that number, or all; as they are now. `settled` leaves out, from the first such on, what may still
   * grow.
   */
  since(number: number, settled: boolean, now = Date.now()): LogEntry[] {
    const out: LogEntry[] = [];
    const first = this.entries[0]?.number ?? 1;
    for (let i = Math.max(0, number + 1 - first); i < this.entries.length; i++) {
      const entry = this.entries[i]!;
      if (settled && now - entry.last < QUIET_MS && now - entry.at < MERGED_FOR_MS) break;
      out.push({ ...entry });
      this.told = Math.max(this.told, entry.number);
    }
    return out;
  }
}
