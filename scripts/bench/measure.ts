/** Rounds: in each, every target in turn plays every scene, so that whatever else the machine does falls on all alike. */
import { spawnSync } from 'node:child_process';
import { median } from './figures.ts';
import { type Material, type Owner, restore, STREAM_BYTES } from './material.ts';
import { difference, type Requests } from './requests.ts';
import { asOrdinary, forget, isRoot, type Opened, type Target } from './targets.ts';
import { type Scene, type SceneStep, START, scenes, type Workload, workloads } from './workloads.ts';

export interface Measurements {
  /** Target, then workload: one figure for each time. Milliseconds, microseconds a call, or bytes a second. */
  figures: Record<string, Record<string, number[]>>;
  /** Target, then workload: requests by opcode, one entry for each repetition, from the first round. */
  requests: Record<string, Record<string, Requests[]>>;
  /** What a target could not do, and its words. */
  failures: { target: string; scene: string; error: string }[];
  /** Starting a program: milliseconds. */
  starts: Record<string, number[]>;
}

export interface Plan {
  targets: readonly Target[];
  /** Ids; a scene without any of them is left out. */
  workloads: ReadonlySet<string>;
  rounds: number;
  material: Record<Owner, Material>;
  say: (line: string) => void;
}

const byId = new Map(workloads.map((workload) => [workload.id, workload]));
const STARTS_A_ROUND = 5;
/** A scene that takes a target longer than this is played in its first round alone: the run must end. */
const LONG_MS = 30_000;

export async function measure(plan: Plan): Promise<Measurements> {
  const out: Measurements = { figures: {}, requests: {}, failures: [], starts: {} };
  const begun = Date.now();
  const turns = plan.rounds * plan.targets.length;
  const long = new Set<string>();
  for (let round = 0; round < plan.rounds; round++) {
    // Another one begins each round: being the first after the last one's writes is nobody's fate.
    for (let i = 0; i < plan.targets.length; i++) {
      const target = plan.targets[(i + round) % plan.targets.length]!;
      const turn = round * plan.targets.length + i;
      const seconds = ((Date.now() - begun) / 1000).toFixed(0);
      plan.say(`round ${round + 1} of ${plan.rounds}, ${turn + 1}/${turns}, ${seconds} s: ${target.name}`);
      for (const [n, scene] of scenes.entries()) {
        const key = `${target.name} ${n}`;
        if (long.has(key)) continue;
        const started = Date.now();
        await play(scene, target, plan, round === 0, out);
        if (Date.now() - started > LONG_MS) long.add(key);
      }
    }
    if (plan.workloads.has(START)) measureStarts(plan.material.ordinary, out.starts);
  }
  return out;
}

async function play(
  scene: Scene,
  target: Target,
  plan: Plan,
  countRequests: boolean,
  out: Measurements,
): Promise<void> {
  const material = plan.material[target.owner];
  const tree = material.trees[scene.tree];
  if (!tree) return;
  const steps = scene.steps(material);
  const wanted = steps
    .map(({ workload }) => workload)
    .filter((id) => id !== undefined && plan.workloads.has(id));
  if (wanted.length === 0) return;
  restore(tree.path);
  scene.before?.(material);
  let opened: Opened | undefined;
  try {
    opened = await target.open({ lower: tree.path, scratch: material.scratch, env: material.env });
    for (const step of steps) await playStep(step, opened, target, countRequests, out);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (!out.failures.some((known) => known.target === target.name && known.scene === wanted[0])) {
      plan.say(`  ${target.name} could not do ${wanted.join(', ')}: ${message}`);
      out.failures.push({ target: target.name, scene: wanted.join(', '), error: message });
    }
  } finally {
    await opened?.close();
  }
}

async function playStep(
  { workload, step, times }: SceneStep,
  opened: Opened,
  target: Target,
  countRequests: boolean,
  out: Measurements,
): Promise<void> {
  for (let time = 0; time < (times ?? 1); time++) {
    const before = workload && countRequests ? await opened.requests?.() : undefined;
    const { ms, value } = await opened.session.do(step);
    if (workload === undefined) continue;
    const figure = figureOf(byId.get(workload)!, ms, value);
    append(out.figures, target.name, workload, figure);
    if (before) {
      const requests = difference(before, await opened.requests!());
      append(out.requests, target.name, workload, requests);
    }
  }
}

function append<T>(table: Record<string, Record<string, T[]>>, row: string, column: string, value: T): void {
  table[row] ??= {};
  table[row][column] ??= [];
  table[row][column].push(value);
}

function figureOf({ unit }: Workload, ms: number, value: unknown): number {
  if (unit === 'bandwidth') return STREAM_BYTES / (ms / 1000);
  return unit === 'call' ? median(value as number[]) * 1000 : ms;
}

/** `node -e 0` against `forget exec -- true`, in turn, as each user. */
function measureStarts({ source, env }: Material, starts: Record<string, number[]>): void {
  const node = [process.execPath, '-e', '0'];
  const exec = [forget, 'exec', '--quiet', '--', 'true'];
  const lines: [string, string[]][] = isRoot
    ? [
        ['node, root', node],
        ['forget, root', exec],
      ]
    : [];
  lines.push(['node, user', [...asOrdinary, ...node]], ['forget, user', [...asOrdinary, ...exec]]);
  for (let i = 0; i < STARTS_A_ROUND; i++) {
    for (const [name, [program, ...args]] of lines) {
      const begun = process.hrtime.bigint();
      const { status, stderr } = spawnSync(program!, args, { cwd: source, env, encoding: 'utf8' });
      if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`);
      starts[name] ??= [];
      starts[name].push(Number(process.hrtime.bigint() - begun) / 1e6);
    }
  }
}
