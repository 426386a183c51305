import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Bundles programs as the product's own build does; keys are the files' names without `.cjs`. */
export async function bundle(outdir: string, entryPoints: Record<string, string>): Promise<void> {
  await build({
    absWorkingDir: root,
    entryPoints,
    outdir,
    outExtension: { '.js': '.cjs' },
    bundle: true,
    platform: 'node',
    format: 'cjs',
    external: ['koffi'],
    define: { 'import.meta.dirname': '__dirname', 'import.meta.filename': '__filename' },
  });
}

/** A throwaway package whose bin/forget is the real one and whose main program is driver.ts. */
export async function installDriver(): Promise<{ directory: string; forget: string; remove: () => void }> {
  const directory = mkdtempSync(`${tmpdir()}/forget-driver-`);
  await bundle(`${directory}/dist`, { forget: 'test/window/driver.ts' });
  cpSync(`${root}bin`, `${directory}/bin`, { recursive: true });
  symlinkSync(`${root}node_modules`, `${directory}/node_modules`);
  // Each user's driver writes its canary there; one that is killed leaves it.
  mkdirSync(`${directory}/canaries`);
  chmodSync(`${directory}/canaries`, 0o1777);
  return {
    directory,
    forget: `${directory}/bin/forget`,
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
