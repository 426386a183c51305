/** The background process of `forget mount`: settings in, one line out, and then the mount until it is gone. */
import { close, read, readFileSync, writeSync } from 'node:fs';
import { leadNowhere } from '../sys/nowhere.ts';
import type { DaemonAnswer, DaemonStart } from './mount.ts';
import { serveMount } from './serve-mount.ts';

function answer(what: DaemonAnswer): void {
  writeSync(1, `${JSON.stringify(what)}\n`);
  // Its number stays taken: what is opened next would be where somebody's stray output goes, and that may be a user's file.
  leadNowhere([1]);
}

const CONFIRMATION = 3;

/** Ends the mount if who asked for it was ended before it could say that there is one. */
function endUnlessConfirmed(): void {
  read(CONFIRMATION, Buffer.alloc(1), 0, 1, null, (_error, bytes) => {
    if (bytes !== 1) process.kill(process.pid, 'SIGTERM');
    close(CONFIRMATION);
  });
}

async function run(): Promise<number> {
  const { settings, mountpoint, first } = JSON.parse(readFileSync(0, 'utf8')) as DaemonStart;
  try {
    return await serveMount(settings, mountpoint, first, (id, notices) => {
      answer({ ready: { id, pid: process.pid }, notices });
      endUnlessConfirmed();
    });
  } catch (error) {
    answer({ failure: error instanceof Error ? error.message : String(error) });
    return 125;
  }
}

void run().then((code) => process.exit(code));
