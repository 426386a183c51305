/**
 * Throwaway workspaces with realistic content, and `bin/forget` run in them under the watchdog.
 * A template is made once a process and user, and copied with everything that `cp -a` keeps.
 */
import { execFileSync } from 'node:child_process';
import { chownSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isProtectedByDefault } from './protected.ts';
import { equalityDifferences, identityDifferences, part, snapshot, type Tree } from './tree.ts';
import {
  asUser,
  environmentOf,
  forgetFor,
  idsOf,
  readableFor,
  temporaryDirectory,
  type User,
} from './users.ts';
import { endMarked, type RunOptions, type RunResult, runWatched } from './watchdog.ts';

const builder = fileURLToPath(new URL('./workspace.py', import.meta.url));
const templates = new Map<User, string>();

function makeDirectory(path: string, user: User): void {
  mkdirSync(path);
  const { uid, gid } = idsOf(user);
  chownSync(path, uid, gid);
}

function template(user: User): string {
  const known = templates.get(user);
  if (known !== undefined) return known;
  const made = join(temporaryDirectory('template', user), 'ws');
  makeDirectory(made, user);
  const [program, ...rest] = asUser(user, ['python3', readableFor(user, builder), made]);
  execFileSync(program!, rest, { env: environmentOf(user) });
  templates.set(user, made);
  return made;
}

/** Makes the directory `path`, with what a filled workspace holds. */
export function fillWorkspace(user: User, path: string): void {
  execFileSync('cp', ['-a', '--', template(user), path]);
}

export interface Workspace {
  user: User;
  /** The directory that holds the workspace and whatever a test puts beside it; owned by the user. */
  top: string;
  path: string;
  /** The lower as it was when the workspace was made. */
  before: Tree;
  /** The marks of the runs in it, whose processes end with the workspace whatever the test found. */
  marks: string[];
}

export interface WorkspaceShape {
  /** The workspace's own name, where the name is what is tested. Default `ws`. */
  name?: string;
  /** An empty workspace instead of the filled one. */
  empty?: boolean;
  /** What else must stand in it before its first snapshot is taken. */
  prepare?: (path: string) => void;
}

/** A workspace of `user`; removed by `disposeWorkspace`. */
export function makeWorkspace(user: User, shape: WorkspaceShape = {}): Workspace {
  const top = temporaryDirectory('w', user);
  const path = join(top, shape.name ?? 'ws');
  if (shape.empty) makeDirectory(path, user);
  else fillWorkspace(user, path);
  shape.prepare?.(path);
  return { user, top, path, before: snapshot(path), marks: [] };
}

export async function disposeWorkspace(workspace: Workspace): Promise<void> {
  for (const mark of workspace.marks) await endMarked(mark);
  rmSync(workspace.top, { recursive: true, force: true });
}

export interface ForgetOptions extends Partial<RunOptions> {
  /** Options of `forget exec` itself, before the `--`. */
  options?: readonly string[];
}

/** `forget exec [options] -- argv` in the workspace, by its user. `--quiet` unless options say otherwise. */
export function forgetExec(
  workspace: Workspace,
  argv: readonly string[],
  options: ForgetOptions = {},
): Promise<RunResult> {
  const user = options.user ?? workspace.user;
  const line = [forgetFor(user), 'exec', ...(options.options ?? ['--quiet']), '--', ...argv];
  return runIn(workspace, line, { ...options, user });
}

function runIn(
  workspace: Workspace,
  argv: readonly string[],
  options: Partial<RunOptions> & { user: User },
): Promise<RunResult> {
  return runWatched(argv, {
    cwd: workspace.path,
    ...options,
    started: (pid, mark) => {
      workspace.marks.push(mark);
      options.started?.(pid, mark);
    },
  });
}

/** The same command without forget. */
export function plainExec(
  workspace: Workspace,
  argv: readonly string[],
  options: Partial<RunOptions> = {},
): Promise<RunResult> {
  return runIn(workspace, argv, { ...options, user: options.user ?? workspace.user });
}

/** How the lower's protected part differs from what it was: none, if forget kept its promise. */
export function protectedDifferences(
  workspace: Workspace,
  isProtected: (path: string) => boolean = isProtectedByDefault,
): string[] {
  return identityDifferences(
    part(workspace.before, isProtected),
    part(snapshot(workspace.path), isProtected),
  );
}

export interface Comparison {
  plain: RunResult;
  inside: RunResult;
  /** The protected part of the lower, before against after. */
  protectedPart: string[];
  /** The unprotected part, the plain copy against the lower. */
  unprotectedPart: string[];
}

export interface ComparisonOptions extends ForgetOptions {
  isProtected?: (path: string) => boolean;
  /** Paths whose bytes differ from run to run without forget too (git's index holds inode numbers and times). */
  contentVaries?: (path: string) => boolean;
  /** Paths that only one side has by design (a protected file renamed to an unprotected name, say). */
  leaveOut?: (path: string) => boolean;
}

/**
 * Runs a program on a plain copy and inside `forget exec` on another, at the very same path one after the other, so
 * that absolute paths in its output and files are equal too.
 */
export async function compareWithPlain(
  user: User,
  argv: readonly string[],
  options: ComparisonOptions = {},
): Promise<Comparison> {
  const isProtected = options.isProtected ?? isProtectedByDefault;
  const wanted = (path: string) => !isProtected(path) && !options.leaveOut?.(path);
  const varies = options.contentVaries ?? (() => false);
  const workspace = makeWorkspace(user);
  const aside = `${workspace.path}-plain`;
  try {
    const plain = await plainExec(workspace, argv, options);
    renameSync(workspace.path, aside);
    fillWorkspace(user, workspace.path);
    workspace.before = snapshot(workspace.path);
    const inside = await forgetExec(workspace, argv, options);
    return {
      plain,
      inside,
      protectedPart: protectedDifferences(workspace, isProtected),
      unprotectedPart: equalityDifferences(
        part(snapshot(aside), wanted),
        part(snapshot(workspace.path), wanted),
        (path, field) => (field === 'content' || field === 'size') && varies(path),
      ),
    };
  } finally {
    await disposeWorkspace(workspace);
  }
}
