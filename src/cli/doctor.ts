import type { Command } from 'commander';
import type { Context } from './main.ts';
import { print, printable, printJson } from './output.ts';

const after = `
With --json, standard output gets {"ok": true or false, "checks": [...]}, each check with
  name, status ("ok", "warn" or "fail"), found (what this machine has), and
  advice (what to do, where something is to be done).
"fail" means that "forget exec" cannot work for this user; "warn", that something is less
than it could be. --fix unmounts forget mounts whose server is gone, never a live one, and puts
right what a "forget keep" that was cut off left in the current directory or above.

Examples:
  forget doctor
  sudo forget doctor --fix

Exit code: 0 when "forget exec" can work; 125 when it cannot, as "forget exec" itself would.`;

export function addDoctor(program: Command, context: Context): void {
  program
    .command('doctor')
    .summary('say what this machine allows, and why not')
    .description('Check each thing that forget needs of this machine, and say what to do about it.')
    .option('--json', 'print JSON')
    .option('--fix', 'unmount dead forget mounts, and clear up after a keep that was cut off')
    .addHelpText('after', after)
    .action(async (options: { json?: true; fix?: true }) => {
      const { examine } = await import('../window/doctor.ts');
      const { ok, checks } = await examine({ fix: options.fix ?? false, cwd: context.cwd() });
      if (options.json) printJson({ ok, checks });
      else {
        const width = Math.max(...checks.map((check) => check.name.length));
        for (const { name, status, found, advice } of checks) {
          print(`${status.padEnd(5)} ${name.padEnd(width)}  ${printable(found)}\n`);
          if (advice) print(`${' '.repeat(width + 8)}-> ${printable(advice)}\n`);
        }
        print(
          ok
            ? '\nforget exec can work here\n'
            : '\nforget exec cannot work here until each "fail" is mended\n',
        );
      }
      if (!ok) context.end(125);
    });
}
