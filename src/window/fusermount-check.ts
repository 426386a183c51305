/** What of this machine and this user fusermount3 depends on. Loads no native code: doctor asks where that fails. */
import { readFileSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { runTool } from './tool.ts';

export const FUSE_CONF = '/etc/fuse.conf';
const S_ISUID = 0o4000;

/** Whether fusermount3 grants `allow_other` to ordinary users here. */
export function mayAllowOthers(): boolean {
  try {
    return /^[ \t]*user_allow_other[ \t]*(#|$)/m.test(readFileSync(FUSE_CONF, 'latin1'));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'EACCES') return false;
    throw error;
  }
}

/** Why an ordinary user cannot mount through fusermount3 here and what to do about it; undefined where he can. */
export async function fusermountObstacle(): Promise<{ found: string; advice: string } | undefined> {
  const { stdout } = await runTool(['sh', '-c', 'command -v fusermount3'], { timeoutMs: 5000 });
  const path = stdout.trim();
  if (!path) return { found: 'fusermount3 is not installed', advice: 'install the package fuse3' };
  const { uid, mode } = statSync(path);
  if (uid !== 0 || !(mode & S_ISUID)) {
    return { found: `${path} is not setuid root`, advice: `sudo chmod u+s ${path}, or install fuse3 again` };
  }
  if (/^NoNewPrivs:\s*1$/m.test(readFileSync('/proc/self/status', 'latin1'))) {
    return {
      found: 'no_new_privs is set, so that fusermount3 does not become root',
      advice: 'run it outside this sandbox',
    };
  }
  if (!hasAccount()) {
    return {
      found: `uid ${process.getuid!()} has no name, and fusermount3 asks for one`,
      advice: 'add an account with that uid (useradd)',
    };
  }
  return undefined;
}

function hasAccount(): boolean {
  try {
    userInfo();
    return true;
  } catch {
    // ENOENT in Node's words: the user database has no such uid.
    return false;
  }
}
