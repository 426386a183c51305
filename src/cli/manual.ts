import type { Command } from 'commander';

/** For the build, which makes man/forget.1 of it. */
export function addManualPage(program: Command): void {
  program.command('manual-page', { hidden: true }).action(async () => {
    const { manualPage } = await import('./manual-page.ts');
    process.stdout.write(manualPage(program));
  });
}
