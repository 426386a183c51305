import type { Command } from 'commander';
import { print } from './output.ts';

/** For the build, which makes man/forget.1 of it. */
export function addManualPage(program: Command): void {
  program.command('manual-page', { hidden: true }).action(async () => {
    const { manualPage } = await import('./manual-page.ts');
    print(manualPage(program));
  });
}
