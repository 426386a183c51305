/** A machine on which the ordinary user may mount, though he has no account here. */
import { type ChildProcess, spawn } from 'node:child_process';
import { appendFileSync, copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ORDINARY_ID, temporaryDirectory } from './users.ts';

const isRoot = process.getuid?.() === 0;

/**
 * A mount namespace in which the ordinary user has the name that fusermount3 asks for, and /etc/fuse.conf says what the
 * test needs: nothing of the machine is changed.
 */
export class Machine {
  private readonly holder: ChildProcess | undefined;
  private readonly ready: Promise<void>;

  /** `prepare`: lines of shell that change more of what is seen there. */
  constructor(fuseConf: string, prepare = '') {
    if (!isRoot) {
      this.ready = Promise.resolve();
      return;
    }
    const etc = temporaryDirectory('etc', 'root');
    copyFileSync('/etc/passwd', join(etc, 'passwd'));
    appendFileSync(join(etc, 'passwd'), `ordinary:x:${ORDINARY_ID}:${ORDINARY_ID}::/:/bin/sh\n`);
    writeFileSync(join(etc, 'fuse.conf'), fuseConf, { mode: 0o644 });
    const script = `set -e\nmount --bind "$1/passwd" /etc/passwd; mount --bind "$1/fuse.conf" /etc/fuse.conf\n${prepare}\necho ready; exec cat`;
    const holder = spawn('unshare', ['--mount', 'sh', '-c', script, 'sh', etc], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.holder = holder;
    this.ready = new Promise((resolve, reject) => {
      holder.stdout.once('data', () => resolve());
      holder.once('exit', (code) => reject(new Error(`the namespace ended (${code})`)));
    });
  }

  /** `argv` as it is to run there, by a user id. */
  async line(uid: number, argv: readonly string[]): Promise<string[]> {
    await this.ready;
    if (!this.holder) return [...argv];
    const ids = ['--reuid', `${uid}`, '--regid', `${uid}`, '--clear-groups'];
    return ['nsenter', `--mount=/proc/${this.holder.pid}/ns/mnt`, '--', 'setpriv', ...ids, '--', ...argv];
  }

  end(): void {
    this.holder?.removeAllListeners('exit');
    this.holder?.kill('SIGKILL');
  }
}
