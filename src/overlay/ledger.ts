/**
 * What the window did to protected paths: which, how, by which program; for the report. No content.
 *
 * State: one record a path, kept for the whole window, also of paths that are gone again.
 */
import { readFileSync } from 'node:fs';
import { displayName } from '../sys/bytes.ts';
import { type LogEntry, type Operation, OperationsLog } from './operations-log.ts';

export interface Program {
  pid: number;
  command: string;
}

export interface PathRecord {
  /** Relative to the workspace, as people read it; what lies elsewhere is absolute, or begins with `~/`. */
  path: string;
  created: boolean;
  deleted: boolean;
  /** Bytes that were written to it, counting each write. */
  written: number;
  /** Attributes, xattrs or length changed. */
  changed: boolean;
  /** Where it was renamed from, if it was. */
  renamedFrom?: string;
  /** It is in the lower, as it was when it was last kept, and nothing was done to it since. */
  kept: boolean;
  /** Who did it: process ids and commands, in order of appearance. */
  programs: Program[];
}

export interface Caught {
  written: number;
  created: number;
  deleted: number;
  renamed: number;
  bytes: number;
}

/** A path that the person had kept in the lower. */
export interface KeptRecord {
  path: string;
  kind: 'created' | 'changed' | 'deleted';
  type: 'file' | 'directory' | 'symlink' | 'other';
  /** Of a regular file. */
  bytes: number;
  /** ISO 8601: when it was last kept. */
  at: string;
}

/** An error that a program got from forget itself, such as the upper being full. */
export interface WindowError {
  path: string;
  error: string;
  count: number;
}

const LOOK_AGAIN_MS = 200;

/** forget itself. */
const NOBODY: Program = { pid: 0, command: '' };

interface Entry {
  record: PathRecord;
  /** The last entry of the log about it. */
  last: LogEntry | null;
}

function newRecord(path: string): PathRecord {
  return {
    path,
    created: false,
    deleted: false,
    written: 0,
    changed: false,
    kept: false,
    programs: [],
  };
}

export class Ledger {
  private readonly records = new Map<string, Entry>();
  /** When each path was touched first, or what was renamed to it: ms since the epoch. */
  private readonly firsts = new Map<string, number>();
  readonly log: OperationsLog;
  private readonly programs = new Map<number, Program>();
  private readonly threads = new Map<number, { program: Program; at: number }>();
  private readonly errors = new Map<string, WindowError>();
  /** Held files that were moved to the lower, and originals that were kept under another name. */
  readonly moved: { path: string; why: string }[] = [];
  /** What went to the lower because the person asked for it, each path once. */
  readonly kept = new Map<string, KeptRecord>();
  /** Paths that are forget's own doing, and nobody's business. */
  ignored = new Set<string>();
  readonly shown: (path: string) => string;

  /** `shown` makes a path of the root one for people. */
  constructor(shown: (path: string) => string = displayName, log = new OperationsLog()) {
    this.shown = shown;
    this.log = log;
  }

  /** A program did this to a path. Returns the path's record, for what else there is to say. */
  note(path: string, pid: number, operation: Exclude<Operation, 'keep'>, bytes = 0): PathRecord {
    let entry = this.records.get(path);
    if (!entry) {
      entry = { record: newRecord(this.shown(path)), last: null };
      if (this.ignored.has(path)) return entry.record;
      this.records.set(path, entry);
      this.firsts.set(path, Date.now());
    }
    const { record } = entry;
    record.kept = false;
    if (operation === 'write') record.written += bytes;
    else if (operation === 'create') record.created = true;
    else if (operation === 'delete') record.deleted = true;
    else if (operation === 'change') record.changed = true;
    const now = Date.now();
    const program = pid > 0 ? this.programOf(pid, now) : NOBODY;
    if (pid > 0 && !record.programs.some((known) => known.pid === program.pid)) record.programs.push(program);
    entry.last = this.log.note(record, entry.last, operation, bytes, program, now);
    return record;
  }

  /** A rename is told with where it came from. */
  noteRename(path: string, pid: number, from: string): PathRecord {
    const record = this.note(path, pid, 'rename');
    record.renamedFrom = this.shown(from);
    const entry = this.records.get(path);
    if (entry?.last) entry.last.renamedFrom = record.renamedFrom;
    return record;
  }

  /** The path went to the lower because the person asked for it. */
  noteKept(path: string, kind: KeptRecord['kind'], type: KeptRecord['type'], bytes: number): void {
    const record = { path: this.shown(path), kind, type, bytes, at: new Date().toISOString() };
    this.kept.delete(path);
    this.kept.set(path, record);
    let entry = this.records.get(path);
    if (!entry) {
      // It was in a directory that was moved or removed as a whole.
      entry = { record: newRecord(this.shown(path)), last: null };
      this.records.set(path, entry);
    }
    entry.record.kept = true;
    entry.last = this.log.note(entry.record, null, 'keep', bytes, NOBODY, Date.now());
  }

  /** The program that did the last thing to a path. */
  lastProgram(path: string): Program | undefined {
    const entry = this.records.get(path);
    const last = entry?.last;
    return last && last.operation !== 'keep'
      ? { pid: last.pid, command: last.command }
      : entry?.record.programs.at(-1);
  }

  get isEmpty(): boolean {
    return this.records.size === 0;
  }

  /** Since when the window has something of its own at a path: ms since the epoch; undefined where that is not known. */
  since(path: string): number | undefined {
    return this.firsts.get(path);
  }

  /** What stands at `path` now stood at `from` before. */
  inherit(path: string, from: string): void {
    const before = this.firsts.get(from);
    if (before === undefined) this.firsts.delete(path);
    else this.firsts.set(path, Math.min(before, this.firsts.get(path) ?? before));
  }

  error(path: string, error: string): void {
    const shown = this.shown(path);
    const key = `${error} ${shown}`;
    const known = this.errors.get(key);
    if (known) known.count++;
    else this.errors.set(key, { path: shown, error, count: 1 });
  }

  noteMoved(path: string, why: string): void {
    this.moved.push({ path: this.shown(path), why });
  }

  paths(): PathRecord[] {
    return [...this.records.values()].map(({ record }) => record);
  }

  errorList(): WindowError[] {
    return [...this.errors.values()];
  }

  caught(): Caught {
    const out: Caught = { written: 0, created: 0, deleted: 0, renamed: 0, bytes: 0 };
    for (const { record } of this.records.values()) {
      if (record.written > 0 || record.changed) out.written++;
      if (record.created) out.created++;
      if (record.deleted) out.deleted++;
      if (record.renamedFrom !== undefined) out.renamed++;
      out.bytes += record.written;
    }
    return out;
  }

  /**
   * The kernel names the thread that asks; what people know is its process. Looked up when it writes, for it may be gone
   * by the time somebody reads the report, and again when that is a while ago: it may have become another program.
   */
  programOf(thread: number, now = Date.now()): Program {
    const known = this.threads.get(thread);
    if (known && now - known.at < LOOK_AGAIN_MS) return known.program;
    let program = known?.program;
    try {
      const status = readFileSync(`/proc/${thread}/status`, 'latin1');
      const pid = Number(/^Tgid:\s*(\d+)/m.exec(status)![1]);
      program = this.programs.get(pid) ?? { pid, command: '' };
      program.command = displayName(readFileSync(`/proc/${pid}/comm`, 'latin1').trimEnd());
    } catch {
      // It ended already, or lives in a process namespace that is not ours.
      program ??= { pid: thread, command: 'unknown' };
    }
    this.programs.set(program.pid, program);
    this.threads.set(thread, { program, at: now });
    return program;
  }
}
