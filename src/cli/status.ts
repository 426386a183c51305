import type { Command } from 'commander';
import type { WindowStatus } from '../window/control.ts';
import { print, printable, printJson, say } from './output.ts';

const after = `
Lists the windows of this user, and for root everyone's. With --json, standard output gets an array of objects:
  id, kind ("exec" or "mount"), pid, workspace, mountpoint, since (ISO 8601), command,
  caught {written, created, deleted, renamed, bytes}, upper {used, limit, noswap} in bytes,
  requests {OPCODE: count}, notifications, memory {rss (bytes), nodes, descriptors},
  windows (of a mount: those that are open, the outermost first) [{name, opened (ISO 8601)}],
  user ("root" or "user"), namespace ("own" or "shared").

Examples:
  forget status
  forget status --json | jq '.[].caught'

Exit code: 0, also when there is no window; 125 when forget fails.`;

export function addStatus(program: Command): void {
  program
    .command('status')
    .summary('list open windows and what they have caught')
    .description('List open windows, and what each has caught so far.')
    .option('--json', 'print JSON')
    .addHelpText('after', after)
    .action(async (options: { json?: true }) => {
      const { listWindows } = await import('../window/control.ts');
      const windows = await listWindows((id, pid) =>
        say(`window ${id} (pid ${pid}) does not answer; it is stopped or very busy`),
      );
      windows.sort((a, b) => a.since.localeCompare(b.since));
      if (options.json) printJson(windows);
      else if (windows.length === 0) print('no open windows\n');
      else {
        const { formatSize } = await import('../window/size.ts');
        print(windows.map((window) => describe(window, formatSize)).join('\n'));
      }
    });
}

function seenBy({ namespace, user }: WindowStatus): string {
  if (namespace === 'own') return 'by its command alone';
  return user === 'root'
    ? 'by every process'
    : "by its user's processes, and all where /etc/fuse.conf allows it";
}

function openWindows({ windows }: WindowStatus): string {
  return windows.map(({ name }) => name).join(', ') || 'none open: nothing is protected';
}

function describe(window: WindowStatus, size: (bytes: number) => string): string {
  const { caught, upper, memory, requests } = window;
  const total = Object.values(requests).reduce((sum, count) => sum + count, 0);
  const most = Object.entries(requests)
    .sort(([, a], [, b]) => b - a)
    .slice(0, 5)
    .map(([opcode, count]) => `${opcode} ${count}`)
    .join(', ');
  const lines = [
    `${window.id}  ${window.kind} of ${window.workspace}, since ${window.since}, as ${window.user}`,
    `  seen        ${seenBy(window)}, at ${window.mountpoint}`,
    ...(window.kind === 'mount' ? [`  windows     ${openWindows(window)}`] : []),
    ...(window.command ? [`  command     ${window.command.join(' ')}`] : []),
    `  caught      ${caught.written} written, ${caught.created} created, ${caught.deleted} deleted, ${caught.renamed} renamed; ${size(caught.bytes)}`,
    `  upper       ${size(upper.used)} of ${size(upper.limit)}${upper.noswap ? '' : ', may be swapped'}`,
    `  requests    ${total}${most ? ` (${most})` : ''}`,
    `  memory      ${size(memory.rss)}, ${memory.nodes} nodes, ${memory.descriptors} descriptors`,
  ];
  return `${lines.map(printable).join('\n')}\n`;
}
