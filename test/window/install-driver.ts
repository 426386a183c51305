import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A throwaway package whose bin/forget is the real one and whose main program is driver.ts. */
export async function installDriver(): Promise<{ directory: string; forget: string; remove: () => void }> {
  const directory = mkdtempSync(`${tmpdir()}/forget-driver-`);
  await build({
    entryPoints: { forget: `${root}test/window/driver.ts` },
    outdir: `${directory}/dist`,
    outExtension: { '.js': '.cjs' },
    bundle: true,
    platform: 'node',
    format: 'cjs',
    external: ['koffi'],
    define: { 'import.meta.url': '__fileUrl' },
    banner: { js: "const __fileUrl = require('node:url').pathToFileURL(__filename).href;" },
  });
  cpSync(`${root}bin`, `${directory}/bin`, { recursive: true });
  symlinkSync(`${root}node_modules`, `${directory}/node_modules`);
  return {
    directory,
    forget: `${directory}/bin/forget`,
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
