/**
 * What the window did to protected paths: which, how, by which program; for the report. No content.
 *
 * State: one record a path, kept for the whole window, also of paths that are gone again.
 */
import { readFileSync } from 'node:fs';
import { displayName } from '../sys/bytes.ts';

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

/** An error that a program got from forget itself, such as the upper being full. */
export interface WindowError {
  path: string;
  error: string;
  count: number;
}

const LOOK_AGAIN_MS = 200;

export class Ledger {
  private readonly records = new Map<string, PathRecord>();
  /** When each path was touched first, or what was renamed to it: ms since the epoch. */
  private readonly firsts = new Map<string, number>();
  private readonly programs = new Map<number, Program>();
  private readonly threads = new Map<number, { program: Program; at: number }>();
  private readonly errors = new Map<string, WindowError>();
  /** Held files that were moved to the lower, and originals that were kept under another name. */
  readonly moved: { path: string; why: string }[] = [];
  /** Paths that are forget's own doing, and nobody's business. */
  ignored = new Set<string>();
  readonly shown: (path: string) => string;

  /** `shown` makes a path of the root one for people. */
  constructor(shown: (path: string) => string = displayName) {
    this.shown = shown;
  }

  /** The record of a path, with the program that touches it now noted. */
  note(path: string, pid: number): PathRecord {
    let record = this.records.get(path);
    if (!record) {
      record = {
        path: this.shown(path),
        created: false,
        deleted: false,
        written: 0,
        changed: false,
        programs: [],
      };
      if (!this.ignored.has(path)) {
        this.records.set(path, record);
        this.firsts.set(path, Date.now());
      }
    }
    if (pid > 0 && !this.ignored.has(path)) {
      const program = this.programOf(pid);
      if (!record.programs.some((known) => known.pid === program.pid)) record.programs.push(program);
    }
    return record;
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
    return [...this.records.values()];
  }

  errorList(): WindowError[] {
    return [...this.errors.values()];
  }

  caught(): Caught {
    const out: Caught = { written: 0, created: 0, deleted: 0, renamed: 0, bytes: 0 };
    for (const record of this.records.values()) {
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
  programOf(thread: number): Program {
    const now = Date.now();
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
