/**
 * A `forget exec` without a filesystem: the modules that find, start, supervise and clean up after a command, put
 * together as the real one does. Bundled by `installDriver` and started through the real bin/forget.
 *
 * `forget exec [--drop=KIND] [--grace=MS] [--leftovers=FILE] [--private] [--repeat=N] [--cwd=DIR] [--canary=FILE]
 *   [--hold] [--unserved=DIR] -- command...`
 *
 * `--hold` never lets the command go. `--unserved` starts it in a mount whose requests nobody answers.
 */
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { mountDevice, openDevice } from '../../src/fuse/mount.ts';
import { currentDirectory, rawArguments } from '../../src/sys/argv.ts';
import { bytesOf } from '../../src/sys/bytes.ts';
import {
  type CommandSpec,
  findCommand,
  findLauncher,
  type StartedCommand,
  startCommand,
} from '../../src/window/command.ts';
import { endLeftovers, mountNamespace } from '../../src/window/leftovers.ts';
import { privateMountNamespace } from '../../src/window/namespace.ts';

async function main(): Promise<never> {
  const args = rawArguments();
  const split = args.indexOf('--');
  const option = (name: string): string | undefined =>
    args
      .slice(0, split)
      .find((word) => word.startsWith(`--${name}`))
      ?.slice(name.length + 3);
  const argv = args.slice(split + 1);
  const unserved = option('unserved');
  const cwd = unserved ?? option('cwd') ?? currentDirectory();
  const found = findCommand(argv[0]!, process.env.PATH && bytesOf(process.env.PATH), cwd);
  if ('code' in found) {
    writeSync(2, `${found.message}\n`);
    process.exit(found.code);
  }
  const launcher = findLauncher();
  if (option('private') !== undefined || unserved) privateMountNamespace();
  if (unserved) mountDevice(openDevice(), unserved, 0, statSync(unserved).mode);
  const drop = (option('drop') ?? 'nothing') as CommandSpec['drop'];
  const beside = unserved ?? join(import.meta.dirname, '../canaries');
  const path = option('canary') ?? `${beside}/${process.pid}`;
  const canaries = { paths: [path], token: 'c0ffee' };
  const start = async (): Promise<StartedCommand> => {
    const started = startCommand({ argv, cwd, canaries, env: { FORGET_TEST: 'yes' }, drop }, launcher);
    if (unserved) writeSync(1, 'spawned\n');
    const [outcome = 'ended'] = (await started.tested) ?? [];
    if (option('canary') === undefined) rmSync(path, { force: true });
    if (option('hold') !== undefined) writeSync(1, `${outcome}\n`);
    else if (outcome === 'held') started.go();
    else if (outcome !== 'ended') {
      started.cancel();
      writeSync(2, `${outcome}\n`);
      process.exit(1);
    }
    return started;
  };

  /** What starting a command may leave behind in this process. */
  const traces = () => ({
    descriptors: readdirSync('/proc/self/fd').length,
    listeners: process.listenerCount('SIGCHLD') + process.listenerCount('SIGTERM'),
    children: readFileSync(`/proc/self/task/${process.pid}/children`, 'latin1'),
  });
  const seen = [];
  for (let left = Number(option('repeat') ?? 0); left > 0; left--) {
    const again = await start();
    await again.done;
    again.release();
    seen.push(traces());
  }
  if (seen.length > 0) writeSync(1, `${JSON.stringify([seen[0], seen.at(-1)])}\n`);

  const command = await start();
  const end = await command.done;
  const left = await endLeftovers(command, {
    grace: Number(option('grace') ?? 1000),
    mountNamespace: option('private') === undefined ? undefined : mountNamespace(),
  });
  const file = option('leftovers');
  if (file) writeFileSync(file, JSON.stringify(left));
  command.release();
  return command.exitAs(end);
}

main();
