/**
 * A window over one workspace: the pieces that `exec` and `mount` both put together. State: the descriptors of the
 * lower and of the device, the server, and when it was opened.
 */
import { mountFlagsOf } from '../fuse/mount.ts';
import { compileRules, type Rules } from '../overlay/rules.ts';
import { Upper, type UpperFs } from '../overlay/upper.ts';
import { cstring, displayName } from '../sys/bytes.ts';
import { O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW, O_PATH } from '../sys/constants.ts';
import { SysError } from '../sys/errno.ts';
import { close, errno, open } from '../sys/libc.ts';
import { Stat } from '../sys/stat.ts';
import { linkedRules } from './linked-rules.ts';
import { bySystemCall, type Mounter } from './mounter.ts';
import { type Canary, newCanary } from './self-test.ts';
import { Server } from './server.ts';
import type { WindowSettings } from './settings.ts';
import { protectedTracked } from './tracked.ts';

const MOST_TRACKED = 5;

export class Window {
  readonly opened = new Date();
  readonly canary: Canary;
  readonly lower: number;
  /** From `mount` on. */
  server!: Server;
  private readonly settings: WindowSettings;
  private readonly rules: Rules;
  readonly tracked: { paths: string[]; more: number };
  private readonly mountpoint: string;
  private readonly mounter: Mounter;
  private readonly upper: UpperFs | Promise<UpperFs>;
  private device = -1;
  private readonly rootMode: number;

  /** Makes everything but the mount. Throws SysError, RuleError or Failure, with nothing left behind. */
  constructor(settings: WindowSettings, mountpoint: string, mounter: Mounter = bySystemCall) {
    this.settings = settings;
    this.mounter = mounter;
    this.mountpoint = mountpoint;
    this.canary = newCanary();
    const rules = [...settings.rules, ...linkedRules(settings), this.canary.rule];
    this.rules = compileRules(rules, { ignoreCase: settings.ignoreCase });
    this.lower = open(cstring(settings.workspace), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (this.lower < 0) throw new SysError(errno(), `opening ${displayName(settings.workspace)}`);
    const st = new Stat();
    const error = st.of(this.lower);
    try {
      if (error) throw new SysError(error, `reading ${displayName(settings.workspace)}`);
      this.upper = mounter.makeUpper(settings.upperSize);
    } catch (failure) {
      close(this.lower);
      throw failure;
    }
    this.rootMode = st.mode;
    // A failure before `mount` waits for it is told there.
    if (this.upper instanceof Promise) this.upper.catch(() => {});
    this.tracked = protectedTracked(settings.workspace, this.rules, MOST_TRACKED);
  }

  /** Mounts, and serves from then on. */
  async mount(): Promise<void> {
    const upper = new Upper(await this.upper);
    const options = {
      rootPath: this.mountpoint,
      lower: this.lower,
      upper,
      rules: this.rules,
      hide: this.settings.hide,
      readonly: this.settings.readonly,
      fixed: new Set(this.settings.configFiles),
    };
    const unreported = [this.canary.name];
    if (this.settings.driver === 'fuse-native') {
      const { NativeDriver } = await import('../fuse/native/driver.ts');
      const flags = mountFlagsOf(this.lower);
      this.server = new Server(
        (handler, events) => new NativeDriver(handler, events, this.mountpoint, flags),
        options,
        unreported,
      );
    } else {
      this.device = this.mounter.mount(this.mountpoint, this.lower, this.rootMode);
      this.server = new Server(this.device, options, unreported);
    }
    this.server.start();
  }

  /** Serves no more. The mount, if it still stands, is dead after this. */
  end(): void {
    if (this.server) this.server.finish();
    else if (this.device >= 0) close(this.device);
  }

  /** After `end`: gives back every descriptor. For a process that goes on. */
  async release(): Promise<void> {
    if (this.server) await this.server.release();
    else
      await Promise.resolve(this.upper).then(
        ({ fd }) => close(fd),
        () => {},
      );
    close(this.lower);
  }

  /** The line for the person at open when rules match what git tracks. */
  trackedNotice(): string | undefined {
    const { paths, more } = this.tracked;
    if (paths.length === 0) return undefined;
    const shown = paths.map(displayName).join(', ') + (more > 0 ? ` and ${more} more` : '');
    return `forget: tracked by git and protected, so changes to it will be gone: ${shown}; --exempt '${displayName(paths[0]!)}' makes it real`;
  }
}
