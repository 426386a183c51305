/**
 * A window: the pieces that `exec` and `mount` both put together. State: for each root the descriptors of its lower and
 * its device and the server; the upper that all share; when it was opened.
 */
import { mountFlagsOf } from '../fuse/mount.ts';
import { Identity } from '../overlay/identity.ts';
import { Upper, type UpperFs } from '../overlay/upper.ts';
import { cstring, displayName } from '../sys/bytes.ts';
import { AT_REMOVEDIR, O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW, O_PATH } from '../sys/constants.ts';
import { SysError } from '../sys/errno.ts';
import { close, errno, open, unlinkat } from '../sys/libc.ts';
import { leadNowhere } from '../sys/nowhere.ts';
import { Stat } from '../sys/stat.ts';
import { recoverBeforeOpening } from './cut-off-keeps.ts';
import { Failure } from './failure.ts';
import type { Outcome } from './gate.ts';
import type { LookedAt } from './looking.ts';
import { bySystemCall, type Mounter } from './mounter.ts';
import { MOST_CONTENTS } from './prefetch.ts';
import { planRoots, type Root } from './roots.ts';
import { say } from './say.ts';
import { type Canary, judge, leakedTo, newCanary } from './self-test.ts';
import { Server, type WindowState } from './server.ts';
import type { WindowSettings } from './settings.ts';
import { shownFrom } from './shown-path.ts';
import { joinStates } from './state.ts';
import { type Tracked, trackedIn } from './tracked.ts';

const MOST_TRACKED = 5;

interface OpenRoot {
  plan: Root;
  /** An O_PATH descriptor of the real directory. */
  lower: number;
  mode: number;
  /** What is mounted there, for the server to take over. */
  device: number;
  server: Server | undefined;
}

export class Window {
  readonly opened = new Date();
  readonly canary: Canary;
  readonly tracked: Tracked;
  /** Byte strings; the first is where the workspace is mounted, or the directory that holds it. */
  readonly mountpoints: readonly string[];
  private readonly settings: WindowSettings;
  private readonly covering: readonly string[];
  private readonly mounter: Mounter;
  private readonly roots: OpenRoot[] = [];
  private readonly upperFs: UpperFs | Promise<UpperFs>;
  private upper: Upper | undefined;
  private left: Promise<void> | undefined;

  /** Makes everything but the mounts. Throws SysError, RuleError or Failure, with nothing left behind. */
  constructor(settings: WindowSettings, mountpoint: string, mounter: Mounter = bySystemCall) {
    this.settings = settings;
    this.mounter = mounter;
    this.canary = newCanary();
    const { roots, workspaceRules, notices } = planRoots(settings, mountpoint, [this.canary.rule]);
    if (roots.length > 1 && settings.driver === 'fuse-native') {
      throw new Failure(
        '--driver fuse-native serves one directory only: say --agent none, or use the other driver',
      );
    }
    this.covering = notices;
    this.mountpoints = roots.map((root) => root.mountpoint);
    try {
      for (const plan of roots) this.roots.push(openRoot(plan));
      this.upperFs = mounter.makeUpper(settings.upperSize);
    } catch (failure) {
      for (const { lower } of this.roots) close(lower);
      throw failure;
    }
    // A failure before `mount` waits for it is told there.
    if (this.upperFs instanceof Promise) this.upperFs.catch(() => {});
    this.tracked = trackedIn(settings.workspace, workspaceRules, {
      paths: MOST_TRACKED,
      small: MOST_CONTENTS + 1,
    });
  }

  /** Mounts, and serves from then on. */
  async mount(): Promise<void> {
    for (const { lower, plan } of this.roots) {
      const line = await recoverBeforeOpening(lower, plan.directory);
      if (line) say([line]);
    }
    const upper = new Upper(await this.upperFs);
    this.upper = upper;
    const identity = new Identity();
    const { workspace, hide, readonly, driver } = this.settings;
    for (const root of this.roots) {
      const { directory, mountpoint, rules, fixed, reached } = root.plan;
      const options = {
        rootPath: mountpoint,
        lower: root.lower,
        upper,
        rules,
        hide,
        readonly,
        fixed: new Set(fixed),
        identity,
        reached,
        share: 1 / this.roots.length,
        shown: shownFrom(directory, workspace),
      };
      const unreported = [this.canary.name];
      if (driver === 'fuse-native') {
        const { NativeDriver } = await import('../fuse/native/driver.ts');
        const flags = mountFlagsOf(root.lower);
        root.server = new Server(
          (handler, events) => new NativeDriver(handler, events, mountpoint, flags),
          options,
          unreported,
        );
      } else {
        root.device = this.mounter.mount(mountpoint, root.lower, root.mode);
        root.server = new Server(root.device, options, unreported);
      }
    }
    for (const { server } of this.roots) {
      server!.besides(this.roots.filter((other) => other.server !== server).map(({ device }) => device));
      server!.start();
    }
  }

  get servers(): Server[] {
    return this.roots.map(({ server }) => server).filter((server) => server !== undefined);
  }

  /** Files and directories that the kernel or forget itself knows of. */
  get knownNodes(): number {
    return this.servers.reduce((sum, { overlay }) => sum + overlay.table.size, 0);
  }

  /** Processes whose reads leave the access times of the workspace's files. From `mount` on. */
  get quietReaders(): Set<number> {
    return this.servers[0]!.overlay.quietReaders;
  }

  /** Whether what the kernel learns of the workspace is good for long. From `mount` on. */
  get lasting(): boolean {
    return this.servers[0]!.lasting;
  }

  /** For whoever looks into the window or keeps of it. From `mount` on. */
  get looked(): LookedAt {
    const { workspace, hide } = this.settings;
    const roots = this.roots.map(({ plan, server }) => ({ ...plan, server: server! }));
    return { workspace, hide, roots };
  }

  /** Resolves when nothing is being kept any more. Before `finish`. */
  async quiet(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.quiet()));
  }

  /** Settles when a root is not served any more, for whatever reason. */
  get ended(): Promise<void> {
    return Promise.race(this.servers.map((server) => server.ended));
  }

  /** What went wrong in forget itself. */
  get defects(): string[] {
    return this.servers.flatMap((server) => server.defects);
  }

  /** Each root's canary, in its view. */
  get canaryPaths(): string[] {
    return this.mountpoints.map((mountpoint) => `${mountpoint}/${this.canary.name}`);
  }

  /** `outcomes` are those of the canaries, undefined where there are none. Throws a Failure when a root does not hold. */
  tested(outcomes: readonly (Outcome | undefined)[] | undefined): void {
    const { name } = this.canary;
    this.roots.forEach(({ lower }, i) => {
      judge(outcomes?.[i], leakedTo(lower, name), this.settings.readonly, lower);
    });
    for (const { server } of this.roots) server!.tested(name);
  }

  state(): WindowState {
    return joinStates(this.servers.map((server) => server.state()));
  }

  /** Serves no more: whoever is inside gets errors from then on. Returns the last state. */
  finish(): WindowState {
    const state = joinStates(this.servers.map((server) => server.finish()));
    this.removeEmptyHomes();
    return state;
  }

  /** Takes the mounts away, also where they are in use. */
  async detach(): Promise<void> {
    for (const mountpoint of this.mountpoints) await this.mounter.detach(mountpoint);
  }

  /** Serves no more. The mounts, if they still stand, are dead after this. */
  end(): void {
    for (const { server, device } of this.roots) {
      if (server) server.finish();
      else if (device >= 0) close(device);
    }
  }

  /** After `end`: has nothing of the real directories open any more. Whoever still looks gets an error. */
  leaveLower(): Promise<void> {
    this.left ??= this.closeLower();
    return this.left;
  }

  private async closeLower(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.release()));
    // The numbers stay taken: the control socket answers for a moment yet.
    leadNowhere(this.roots.map(({ lower }) => lower));
  }

  /** After `end`: gives back every descriptor. For a process that goes on. */
  async release(): Promise<void> {
    await this.leaveLower();
    for (const { lower } of this.roots) close(lower);
    if (this.upper) this.upper.close();
    else
      await Promise.resolve(this.upperFs).then(
        ({ fd }) => close(fd),
        () => {},
      );
  }

  /** Lines for the person at open: what else is covered, and what git tracks that the rules match. */
  notices(): string[] {
    const { paths, more } = this.tracked;
    if (paths.length === 0) return [...this.covering];
    const shown = paths.map(displayName).join(', ') + (more > 0 ? ` and ${more} more` : '');
    return [
      ...this.covering,
      `forget: tracked by git and protected, so changes to it will be gone: ${shown}; --exempt '${displayName(paths[0]!)}' makes it real`,
    ];
  }

  /**
   * A directory that was covered before it existed, and that the window made and left empty, was made for protected
   * files alone.
   */
  private removeEmptyHomes(): void {
    for (const { plan, lower, server } of this.roots) {
      for (const path of [...plan.missing].reverse()) {
        if (server?.madeDirectory(path)) unlinkat(lower, cstring(path), AT_REMOVEDIR);
      }
    }
  }
}

/** Throws SysError. */
function openRoot(plan: Root): OpenRoot {
  const name = displayName(plan.directory);
  const lower = open(cstring(plan.directory), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
  if (lower < 0) throw new SysError(errno(), `opening ${name}`);
  const st = new Stat();
  const error = st.of(lower);
  if (error) {
    close(lower);
    throw new SysError(error, `reading ${name}`);
  }
  return { plan, lower, mode: st.mode, device: -1, server: undefined };
}
