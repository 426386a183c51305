import type { Command } from 'commander';
import type { Context } from './main.ts';

const after = `
TARGET is a mount point, or an id that "forget status" shows.

Examples:
  forget unmount ~/project
  forget unmount --force 4711-09af

Exit code: 0 when unmounted; 125 when forget fails, or a process still uses the mount
and --force was not given.`;

export function addUnmount(program: Command, context: Context): void {
  program
    .command('unmount')
    .summary('close a window that "forget mount" opened')
    .description('Close the window of a mount, and unmount it.')
    .argument('<target>', 'a mount point or an id')
    .option('--force', 'also when processes still use it')
    .addHelpText('after', after)
    .action(async (target: string, options: { force?: true }) => {
      const [{ isId }, { resolveMountedPath }, { unmountWindow }] = await Promise.all([
        import('../window/window-id.ts'),
        import('../window/workspace.ts'),
        import('../window/mount.ts'),
      ]);
      // A directory that is named like an id can be written ./4711-09af.
      const resolved = isId(target) ? target : resolveMountedPath(target, context.cwd());
      await unmountWindow(resolved, { force: options.force ?? false });
    });
}
