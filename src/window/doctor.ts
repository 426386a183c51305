/** What forget needs of a machine, what this one has, and what to do about the difference. */
import { closeSync, constants, lstatSync, openSync, readFileSync } from 'node:fs';
import { release } from 'node:os';
import { displayName } from '../sys/bytes.ts';
import { FSCONFIG_SET_FLAG, FSOPEN_CLOEXEC } from '../sys/constants.ts';
import { listWindows } from './control.ts';
import { Failure } from './failure.ts';
import { FUSE_CONF, fusermountObstacle, mayAllowOthers } from './fusermount-check.ts';
import { clearMount, findForgetMounts } from './stale.ts';
import { runTool } from './tool.ts';

export interface Check {
  name: string;
  /** `fail`: `forget exec` cannot work for this user. `warn`: less than it could be. */
  status: 'ok' | 'warn' | 'fail';
  found: string;
  advice?: string;
}

export interface Examination {
  ok: boolean;
  checks: Check[];
}

/** `cwd` is a byte string: cut-off keeps are looked for there and above. */
export async function examine(options: { fix: boolean; cwd: string }): Promise<Examination> {
  const namespaces = checkNamespaces();
  const windows = checkWindows(options.fix);
  const checks = await Promise.all([
    checkNode(),
    checkKernel(),
    checkDevice(),
    namespaces,
    checkSetpriv(),
    checkKoffi(),
    checkFuseNative(),
    checkUpper(),
    checkMounting(namespaces),
    checkWatches(),
    checkOpenFiles(),
    windows.then(({ check }) => check),
    windows.then(({ silent }) => checkMounts(options.fix, silent)),
    checkKeeps(options.cwd, options.fix),
  ]);
  return { ok: checks.every((check) => check.status !== 'fail'), checks };
}

const isRoot = () => process.getuid!() === 0;
const firstLine = (text: string) => text.trim().split('\n')[0] ?? '';
const ok = (name: string, found: string): Check => ({ name, status: 'ok', found });
const warn = (name: string, found: string, advice: string): Check => ({
  name,
  status: 'warn',
  found,
  advice,
});
const fail = (name: string, found: string, advice: string): Check => ({
  name,
  status: 'fail',
  found,
  advice,
});

function atLeast(version: string, major: number, minor: number): boolean {
  const [a = 0, b = 0] = version.split('.').map(Number.parseFloat);
  return a > major || (a === major && b >= minor);
}

function checkNode(): Check {
  const version = process.versions.node;
  if (atLeast(version, 20, 19)) return ok('node', version);
  return fail('node', `${version}, and forget needs 20.19`, 'install a newer Node');
}

function checkKernel(): Check {
  const version = release();
  // openat2 came with 5.6; the FUSE protocol needed, 7.31, and fsopen are older.
  if (!atLeast(version, 5, 6))
    return fail('kernel', `Linux ${version}, and forget needs 5.6`, 'run a newer kernel');
  return ok('kernel', `Linux ${version}`);
}

function checkDevice(): Check {
  const name = '/dev/fuse';
  const node = lstatSync(name, { throwIfNoEntry: false });
  if (!node) {
    return fail(
      name,
      'is missing',
      'load the module (sudo modprobe fuse); in a container, start it with --device /dev/fuse',
    );
  }
  const mode = (node.mode & 0o777).toString(8).padStart(4, '0');
  try {
    closeSync(openSync(name, constants.O_RDWR));
    return ok(name, `opens (mode ${mode}, uid ${node.uid})`);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const found = `this user may not open it (${code}; mode ${mode}, uid ${node.uid})`;
    if (code === 'EACCES') return fail(name, found, 'sudo chmod 0666 /dev/fuse, as most systems have it');
    if (code === 'EPERM') return fail(name, found, 'the container bars it: start it with --device /dev/fuse');
    return fail(name, `does not open (${code})`, 'load the module: sudo modprobe fuse');
  }
}

/** Tries what bin/forget and the window's start do, and explains a failure from the settings known to cause it. */
async function checkNamespaces(): Promise<Check> {
  const name = isRoot() ? 'mount namespace' : 'user namespace';
  const options = isRoot() ? ['--mount'] : ['--user', '--mount', '--map-current-user', '--keep-caps'];
  const end = await runTool(['unshare', ...options, 'true'], { timeoutMs: 5000 });
  if (end.code === 0) return ok(name, `unshare ${options.join(' ')} works`);
  if (end.code === undefined) {
    if (isRoot()) return ok(name, 'not tried: unshare is not installed, and root does not need it');
    return fail(name, 'unshare is not installed', 'install the package util-linux');
  }
  const said = firstLine(end.stderr) || 'unshare fails';
  if (/(unrecognized|unknown|invalid) option/.test(end.stderr)) {
    return fail(name, said, 'install util-linux 2.36 or newer');
  }
  if (isRoot()) {
    return fail(name, said, 'CAP_SYS_ADMIN is missing: start the container with --cap-add SYS_ADMIN');
  }
  for (const { file, bars, advice } of namespaceSettings) {
    const value = readSetting(file);
    if (value === bars) return fail(name, `${said}; ${file} is ${value}`, advice);
  }
  return fail(
    name,
    said,
    'in a container, allow it (--security-opt seccomp=unconfined), or run forget as root',
  );
}

const namespaceSettings = [
  {
    file: '/proc/sys/kernel/apparmor_restrict_unprivileged_userns',
    bars: '1',
    advice:
      'AppArmor bars it: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or give unshare a profile with "userns,"',
  },
  {
    file: '/proc/sys/kernel/unprivileged_userns_clone',
    bars: '0',
    advice: 'sudo sysctl -w kernel.unprivileged_userns_clone=1',
  },
  {
    file: '/proc/sys/user/max_user_namespaces',
    bars: '0',
    advice: 'sudo sysctl -w user.max_user_namespaces=15000',
  },
];

function readSetting(file: string): string | undefined {
  try {
    return readFileSync(file, 'latin1').trim();
  } catch {
    // Each of these files exists on some systems only.
    return undefined;
  }
}

async function checkSetpriv(): Promise<Check> {
  const name = 'setpriv';
  const { code, stdout } = await runTool(['setpriv', '--help'], { timeoutMs: 5000 });
  if (code === undefined) return fail(name, 'is not installed', 'install the package util-linux');
  const missing = ['--pdeathsig', '--bounding-set', '--inh-caps', '--ambient-caps'].filter(
    (option) => !stdout.includes(option),
  );
  if (missing.length === 0) return ok(name, 'has the options that forget uses');
  return fail(name, `lacks ${missing.join(', ')}`, 'install util-linux 2.33 or newer, in place of busybox');
}

async function checkKoffi(): Promise<Check> {
  try {
    await import('../sys/libc.ts');
    return ok('koffi', `loads (${process.arch})`);
  } catch (error) {
    const said = error instanceof Error ? firstLine(error.message) : String(error);
    return fail(
      'koffi',
      `does not load: ${said}`,
      'reinstall forgetfs here (npm ci), for this machine and this Node',
    );
  }
}

/** The other driver: nobody needs it who does not ask for it. */
async function checkFuseNative(): Promise<Check> {
  const name = 'fuse-native';
  const { DriverUnavailable, loadAddon } = await import('../fuse/native/addon.ts');
  try {
    const { LIMITS } = await import('../fuse/native/limits.ts');
    const { version, library } = loadAddon();
    return ok(name, `${version} loads, with ${library}; what it cannot do: ${LIMITS.join('; ')}`);
  } catch (error) {
    if (!(error instanceof DriverUnavailable)) throw error;
    return ok(name, `not usable, which only --driver fuse-native needs: ${error.found}; ${error.advice}`);
  }
}

/** Swap is where protected bytes could reach a disk. */
async function checkUpper(): Promise<Check> {
  const name = 'upper';
  const swap = (readSetting('/proc/swaps') ?? '').split('\n').length > 1;
  const advice =
    'encrypt the swap or turn it off (sudo swapoff -a), or run forget as root on Linux 6.4 or newer';
  if (!isRoot()) {
    const found = 'tmpfs in a user namespace, where noswap is not to be had';
    return swap
      ? warn(name, `${found}, and this machine swaps`, advice)
      : ok(name, `${found}; this machine has no swap`);
  }
  if (await hasNoswap()) return ok(name, 'tmpfs with noswap');
  const found = `tmpfs without noswap (Linux ${release()})`;
  return swap
    ? warn(name, `${found}, and this machine swaps`, advice)
    : ok(name, `${found}; this machine has no swap`);
}

/** Configures a tmpfs and gives it up before it is created. */
async function hasNoswap(): Promise<boolean> {
  try {
    const { fsopen, fsconfig, close } = await import('../sys/libc.ts');
    const fd = fsopen(Buffer.from('tmpfs\0'), FSOPEN_CLOEXEC);
    if (fd < 0) return false;
    const result = fsconfig(fd, FSCONFIG_SET_FLAG, Buffer.from('noswap\0'), null, 0);
    close(fd);
    return result === 0;
  } catch {
    // Without koffi nothing works, which its own check says.
    return false;
  }
}

/** Whether this user can `forget mount`; `forget exec` does without what is missing here. */
async function checkMounting(namespaces: Promise<Check>): Promise<Check> {
  const name = 'forget mount';
  if ((await namespaces).status === 'fail') {
    const missing = isRoot() ? 'CAP_SYS_ADMIN' : 'a user namespace, in which its RAM is made';
    return warn(name, `is not possible without ${missing}`, 'as for the namespace above');
  }
  if (isRoot()) return ok(name, 'works, for every process');
  const obstacle = await fusermountObstacle();
  if (obstacle) return warn(name, `is not possible: ${obstacle.found}`, obstacle.advice);
  const others = mayAllowOthers()
    ? 'every process'
    : `your own processes alone (user_allow_other in ${FUSE_CONF} opens it to all)`;
  return ok(name, `works through fusermount3, for ${others}`);
}

function checkWatches(): Check {
  const watches = Number(readSetting('/proc/sys/fs/inotify/max_user_watches'));
  const instances = Number(readSetting('/proc/sys/fs/inotify/max_user_instances'));
  const found = `${watches} watches, ${instances} instances`;
  if (watches >= 65536 && instances >= 64) return ok('inotify', found);
  return warn(
    'inotify',
    `${found}; a directory beyond that shows outside changes after a second, not at once`,
    'sudo sysctl -w fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=512',
  );
}

function checkOpenFiles(): Check {
  const [, soft, hard] =
    /^Max open files\s+(\S+)\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? [];
  const found = `${soft} at once, up to ${hard}`;
  if (hard === 'unlimited' || Number(hard) >= 4096) return ok('open files', found);
  return warn('open files', found, 'raise the limit (ulimit -Hn), to 4096 at least');
}

/** With the places of windows that do not answer, so that nobody asks their mounts. */
async function checkWindows(fix: boolean): Promise<{ check: Check; silent: Set<string> }> {
  const name = 'windows';
  const silent = new Set<string>();
  const ids: string[] = [];
  let open: number;
  try {
    open = (await listWindows((id) => ids.push(id))).length;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const advice = 'forget status and forget unmount find no window until then';
    return { check: warn(name, error.message, advice), silent };
  }
  const { clearStuck, describeStuck, stuckWindow } = await import('./stuck.ts');
  const left: string[] = [];
  const done: string[] = [];
  const look = async (id: string): Promise<void> => {
    const window = stuckWindow(id);
    if (!window) {
      left.push(`window ${id} does not answer, and its process cannot be seen from here`);
      return;
    }
    if (window.guardian) silent.add(window.guardian.mountpoint);
    if (window.state === 'suspended' || !fix) {
      (window.state === 'suspended' ? done : left).push(describeStuck(window));
      return;
    }
    const { outcome, how } = await clearStuck(window);
    (outcome === 'stays' ? left : done).push(how);
    // It serves again, or its mount is gone or dead.
    if (window.guardian) silent.delete(window.guardian.mountpoint);
  };
  await Promise.all(ids.map(look));
  const found = [`${open} open`, ...done, ...left].join('; ');
  if (left.length === 0) return { check: ok(name, found), silent };
  const advice = fix
    ? 'run it as root or as their user; what waits in the kernel ends when its disk or network answers'
    : 'forget doctor --fix has them go on, or ends them with what they caught';
  return { check: warn(name, found, advice), silent };
}

async function checkKeeps(cwd: string, fix: boolean): Promise<Check> {
  const name = 'keeping';
  const { cutOffKeeps } = await import('./cut-off-keeps.ts');
  const keeps = await cutOffKeeps(cwd, fix);
  const found = keeps.map(({ directory, outcome }) => `${directory}: ${outcome}`).join('; ');
  if (keeps.every(({ settled }) => settled)) return ok(name, found || 'nothing was cut off here');
  const advice = fix ? 'look at it, and run it as the user who kept' : 'forget doctor --fix puts it right';
  return warn(name, found, advice);
}

async function checkMounts(fix: boolean, silentPlaces: ReadonlySet<string>): Promise<Check> {
  const name = 'mounts';
  const known = new Map([...silentPlaces].map((place) => [place, 'silent'] as const));
  const mounts = await findForgetMounts(known);
  const silent = mounts
    .filter((mount) => mount.state === 'silent')
    .map((mount) => displayName(mount.mountpoint));
  const left: string[] = [];
  const cleared: string[] = [];
  for (const { mountpoint, state } of mounts) {
    if (state !== 'dead') continue;
    const place = displayName(mountpoint);
    const failure = fix ? await clearMount(mountpoint) : 'its server is gone';
    if (failure) left.push(`${place} (${failure})`);
    else cleared.push(place);
  }
  const alive = mounts.filter((mount) => mount.state === 'alive').length;
  const found = [`${alive} in use`, ...(cleared.length > 0 ? [`cleared ${cleared.join(', ')}`] : [])].join(
    '; ',
  );
  if (left.length > 0) {
    const advice = fix ? 'sudo forget doctor --fix' : 'forget doctor --fix';
    return warn(name, `${found}; dead: ${left.join(', ')}`, advice);
  }
  if (silent.length > 0) {
    return warn(name, `${found}; no answer from ${silent.join(', ')}`, 'forget unmount --force ends it');
  }
  return ok(name, found);
}
