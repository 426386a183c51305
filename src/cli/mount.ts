import type { Command } from 'commander';
import { displayName } from '../sys/bytes.ts';
import { Failure } from '../window/failure.ts';
import type { Context } from './main.ts';
import { say } from './output.ts';
import { addWindowOptions, configurationHelp } from './window-options.ts';

const after = `
Without MOUNTPOINT the workspace is mounted over itself, for every process. forget goes
to the background when the mount is ready. In place it first looks for processes that
already have the workspace open, since those write past the mount, and refuses with
their names.

One window is open at once. "forget open" and "forget close" open and close more on the
mount, while programs run in it; while none is open, everything is real.

Root is not needed: an ordinary user mounts through fusermount3 (package fuse3) and with
a user namespace. Then only that user's processes can use the mount, and root cannot
either, unless /etc/fuse.conf has the line user_allow_other; and what others make in it
belongs to that user.
${configurationHelp}
Examples:
  forget mount ~/project
  forget mount --agent claude --agent codex ~/project
  forget mount --foreground ~/project /mnt/view
  forget mount --json ~/project
  forget mount --no-window ~/project; forget open ~/project

With --json, standard output gets {"id", "pid", "mountpoint"} once the mount is ready.
Exit code: 0 when mounted (with --foreground: when unmounted); 125 when forget fails.`;

export function addMount(program: Command, context: Context): void {
  const command = program
    .command('mount')
    .summary('open a window that every process sees')
    .description('Mount a workspace, in place or elsewhere, with a window open.')
    .argument('<workspace>', 'the directory to cover')
    .argument('[mountpoint]', 'where to show it (default: in place)')
    .option('--foreground', 'stay, and unmount at the end')
    .option('--no-window', 'mount, and open no window yet: nothing is protected until "forget open"')
    .option('--name <name>', 'the name of the window, for "forget close" (default: 1)')
    .option('--force', 'mount in place although processes have the workspace open')
    .option('--json', 'print what was mounted as JSON')
    .addHelpText('after', after);
  const options = addWindowOptions(command);
  command.action(async (workspace: string, mountpoint: string | undefined) => {
    const [{ buildSettings }, { resolveMountpoint }] = await Promise.all([
      import('../window/settings.ts'),
      import('../window/workspace.ts'),
    ]);
    const cwd = context.cwd();
    const { settings, notices, covering } = await buildSettings({ ...options(), workspace }, cwd);
    const place =
      mountpoint === undefined ? settings.workspace : resolveMountpoint(mountpoint, cwd, settings.workspace);
    notices.forEach(say);
    if (!settings.quiet) covering.forEach(say);
    const { foreground, force, json, window, name } = command.opts<{
      foreground?: true;
      force?: true;
      json?: true;
      window: boolean;
      name?: string;
    }>();
    if (name !== undefined && !window) throw new Failure('--no-window opens none that --name could name');
    const { mountWindow } = await import('../window/mount.ts');
    context.end(
      await mountWindow(settings, {
        mountpoint: place,
        foreground: foreground ?? false,
        force: force ?? false,
        json: json ?? false,
        first: { open: window, name: name === undefined ? undefined : displayName(name) },
      }),
    );
  });
}
