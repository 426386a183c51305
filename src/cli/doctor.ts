import type { Command } from 'commander';
import type { Context } from './main.ts';
import { printable, printJson } from './output.ts';

const after = `
With --json, standard output gets {"ok": true or false, "checks": [...]}, each check with
  name, status ("ok", "warn" or "fail"), found (what this machine has), and
  advice (what to do, where something is to be done).
"fail" means that "forget exec" cannot work for this user; "warn", that something is less
than it could be. --fix unmounts forget mounts whose server is gone, never a live one.

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
    .option('--fix', 'unmount dead forget mounts')
    .addHelpText('after', after)
    .action(async (options: { json?: true; fix?: true }) => {
      const { examine } = await import('../window/doctor.ts');
      const { ok, checks } = await examine({ fix: options.fix ?? false });
      if (options.json) printJson({ ok, checks });
      else {
        const width = Math.max(...checks.map((check) => check.name.length));
        for (const { name, status, found, advice } of checks) {
          process.stdout.write(`${status.padEnd(5)} ${name.padEnd(width)}  ${printable(found)}\n`);
          if (advice) process.stdout.write(`${' '.repeat(width + 8)}-> ${printable(advice)}\n`);
        }
        process.stdout.write(
          ok
            ? '\nforget exec can work here\n'
            : '\nforget exec cannot work here until each "fail" is mended\n',
        );
      }
      if (!ok) context.end(125);
    });
}
