import type { Command } from 'commander';
import { displayName } from '../sys/bytes.ts';
import type { Context } from './main.ts';
import { print, printable, printJson } from './output.ts';

const after = `
A preset says where an agent keeps its state outside of the workspace: what a window over it
forgets, and what stays real. "forget exec" recognises the agent by its program; elsewhere
--agent names it. Directories are those of this environment (CLAUDE_CONFIG_DIR, CODEX_HOME
and the like). With --json, standard output gets an array of objects: name, title, programs,
packages, own, covers [{directory, rules}], workspace, parts [{name, title, chosen}], real,
notes, sources [{source, date}].

Examples:
  forget presets
  forget presets claude
  forget presets --json openclaw+real-databases
  CODEX_HOME=/srv/codex forget presets codex

Exit code: 0; 125 when there is no such preset, or forget fails otherwise.`;

export function addPresets(program: Command, context: Context): void {
  program
    .command('presets')
    .summary('show what is covered for each agent')
    .description('Show what windows cover for the agents that forget knows, here and now.')
    .argument('[agent]', 'one preset, with its parts as NAME+PART (default: a list of all)')
    .option('--json', 'print JSON')
    .addHelpText('after', after)
    .action(async (name: string | undefined, options: { json?: true }) => {
      const [{ loadPersonal }, { description, showPresets, summary }] = await Promise.all([
        import('../window/config.ts'),
        import('../window/presets/show.ts'),
      ]);
      const personal = (await loadPersonal())?.config;
      const presets = showPresets({
        name: name === undefined ? undefined : displayName(name),
        own: personal?.presets ?? [],
        parts: personal?.parts ?? {},
        cwd: context.cwd(),
      });
      if (options.json) printJson(presets);
      else {
        const text =
          name === undefined ? presets.map(summary).join('\n') : presets.map(description).join('\n\n');
        print(`${text.split('\n').map(printable).join('\n')}\n`);
      }
    });
}
