/**
 * The workloads, in scenes: a scene is a fresh mount and what is done in it, one thing after the other. "First" means a
 * fresh mount, a second old, over a lower that is in the page cache; "warm" is the same again. A cold lower would cost
 * every target the same time of the disk.
 */
import { join } from 'node:path';
import {
  dropFromCache,
  type Material,
  npmCi,
  OUT,
  readOnce,
  STREAM_BYTES,
  STREAM_FILE,
  type TreeName,
} from './material.ts';
import type { Step } from './session.ts';
import { NEEDLE } from './source-tree.ts';

/** Not a scene: starting `forget exec` beside starting Node. */
export const START = 'start';
export const STORM_FILES = 1000;
export const STORM_BYTES = 1000;

export interface Workload {
  id: string;
  title: string;
  /** What a figure stands for: the time of all of it, of one call, or bytes a second. */
  unit: 'time' | 'call' | 'bandwidth';
  /** What DESIGN 7 wants of it against native: a time's ratio at most, a bandwidth's at least. */
  goal?: number;
}

export interface SceneStep {
  /** Absent: preparation, which is not measured. */
  workload?: string;
  step: Step;
  /** How often; default once. */
  times?: number;
}

export interface Scene {
  tree: TreeName;
  /** On the real directory, before the mount. */
  before?(material: Material): void;
  steps(material: Material): SceneStep[];
}

export const workloads: readonly Workload[] = [
  { id: 'status-first', title: 'git status, first', unit: 'time', goal: 4 },
  { id: 'status-warm', title: 'git status, warm', unit: 'time', goal: 1.3 },
  { id: 'rg-first', title: 'rg, first', unit: 'time', goal: 4 },
  { id: 'rg-warm', title: 'rg, warm', unit: 'time', goal: 1.3 },
  { id: 'find-first', title: 'find, first', unit: 'time' },
  { id: 'find-warm', title: 'find, warm', unit: 'time', goal: 1.3 },
  { id: 'stat-first', title: 'stat of a file, first', unit: 'call' },
  { id: 'stat-warm', title: 'stat of a file, warm', unit: 'call' },
  { id: 'tar', title: 'tar', unit: 'time', goal: 4 },
  { id: 'cp', title: 'cp -r into it', unit: 'time', goal: 4 },
  { id: 'rm', title: 'rm -rf of that', unit: 'time', goal: 4 },
  { id: 'create', title: `${STORM_FILES} small files`, unit: 'time', goal: 4 },
  { id: 'clone', title: 'git clone', unit: 'time', goal: 4 },
  { id: 'npm-ci', title: 'npm ci', unit: 'time', goal: 4 },
  { id: 'read-cold', title: 'read, from disk', unit: 'bandwidth', goal: 0.5 },
  { id: 'read-first', title: 'read, first', unit: 'bandwidth', goal: 0.5 },
  { id: 'read-warm', title: 'read, warm', unit: 'bandwidth' },
  { id: 'write', title: 'write', unit: 'bandwidth', goal: 0.4 },
  { id: 'status-first-50k', title: 'git status, first, 50,000 files', unit: 'time', goal: 4 },
  { id: 'status-warm-50k', title: 'git status, warm, 50,000 files', unit: 'time', goal: 1.3 },
  { id: 'rg-first-50k', title: 'rg, first, 50,000 files', unit: 'time', goal: 4 },
  { id: 'rg-warm-50k', title: 'rg, warm, 50,000 files', unit: 'time', goal: 1.3 },
  { id: 'find-first-50k', title: 'find, first, 50,000 files', unit: 'time' },
  { id: 'find-warm-50k', title: 'find, warm, 50,000 files', unit: 'time', goal: 1.3 },
];

const run = (...argv: string[]): Step => ({ step: 'run', argv });
const status = run('git', 'status', '--short');
const search = run('rg', '--files-with-matches', NEEDLE);
const walk = run('find', '.', '-name', 'no-such-name');

function firstAndWarm(tree: TreeName, name: string, step: Step, suffix: string, warm: number): Scene {
  return {
    tree,
    steps: () => [
      { workload: `${name}-first${suffix}`, step },
      { workload: `${name}-warm${suffix}`, step, times: warm },
    ],
  };
}

const streamFile = ({ trees }: Material): string => join(trees.stream!.path, STREAM_FILE);
const readStream: Step = { step: 'read', path: STREAM_FILE };

export const scenes: readonly Scene[] = [
  firstAndWarm('small', 'status', status, '', 4),
  firstAndWarm('small', 'rg', search, '', 4),
  firstAndWarm('small', 'find', walk, '', 4),
  {
    tree: 'small',
    steps: ({ trees }) => {
      const step: Step = { step: 'stat', paths: trees.small!.objects };
      return [
        { workload: 'stat-first', step },
        { workload: 'stat-warm', step },
      ];
    },
  },
  // tar does not read when its archive is /dev/null.
  {
    tree: 'small',
    steps: () => [{ workload: 'tar', step: run('sh', '-c', 'tar -cf - . | cat >/dev/null') }],
  },
  {
    tree: 'small',
    steps: ({ source }) => [
      { step: run('mkdir', OUT) },
      { workload: 'cp', step: run('cp', '-r', source, `${OUT}/copy`) },
      { workload: 'rm', step: run('rm', '-rf', `${OUT}/copy`) },
      {
        workload: 'create',
        step: { step: 'create', directory: `${OUT}/storm`, count: STORM_FILES, bytes: STORM_BYTES },
      },
    ],
  },
  {
    tree: 'small',
    steps: ({ trees }) => [
      { step: run('mkdir', OUT) },
      {
        workload: 'clone',
        step: run('git', 'clone', '-q', '--no-hardlinks', trees.small!.path, `${OUT}/clone`),
      },
    ],
  },
  {
    tree: 'small',
    steps: ({ project, npmCache }) => [
      { step: run('mkdir', OUT) },
      { step: run('cp', '-r', project, `${OUT}/project`) },
      {
        workload: 'npm-ci',
        step: { ...run('npm', ...npmCi(npmCache, { offline: true })), cwd: `${OUT}/project` },
      },
    ],
  },
  {
    tree: 'stream',
    before: (material) => dropFromCache(streamFile(material)),
    steps: () => [{ workload: 'read-cold', step: readStream }],
  },
  {
    tree: 'stream',
    before: (material) => readOnce(streamFile(material)),
    steps: () => [
      { workload: 'read-first', step: readStream },
      { workload: 'read-warm', step: readStream, times: 2 },
      { step: run('mkdir', OUT) },
      { workload: 'write', step: { step: 'write', path: `${OUT}/written`, bytes: STREAM_BYTES } },
    ],
  },
  firstAndWarm('large', 'status', status, '-50k', 3),
  firstAndWarm('large', 'rg', search, '-50k', 3),
  firstAndWarm('large', 'find', walk, '-50k', 3),
];
