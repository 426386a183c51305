/** Programs that the run needs, from Debian: installed where root may, named otherwise. */
import { spawnSync } from 'node:child_process';

const PROGRAM_OF: Record<string, string> = {
  ripgrep: 'rg',
  'util-linux': 'setpriv',
  'unionfs-fuse': 'unionfs-fuse',
};

/** Which of these packages' programs are not in the PATH. */
function missing(packages: readonly string[]): string[] {
  return packages.filter(
    (name) => spawnSync('sh', ['-c', 'command -v "$1"', 'sh', PROGRAM_OF[name] ?? name]).status !== 0,
  );
}

/**
 * Installs what is missing with apt-get, as root. Returns what is missing all the same; `say` gets a line for what is
 * done and, where nothing can be, for what a person would have to do.
 */
export function installPackages(packages: readonly string[], say: (line: string) => void): string[] {
  const wanted = missing(packages);
  if (wanted.length === 0) return [];
  const isRoot = process.getuid?.() === 0;
  const command = `apt-get install -y --no-install-recommends ${wanted.join(' ')}`;
  if (!isRoot) {
    say(`missing: ${wanted.join(', ')}; install with: sudo ${command}`);
    return wanted;
  }
  say(`installing ${wanted.join(', ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  spawnSync('sh', ['-c', `apt-get update -q && ${command}`], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  const still = missing(wanted);
  if (still.length > 0) say(`not installed: ${still.join(', ')}`);
  return still;
}

/** `{package: version}` as dpkg knows them; those it does not know are left out. */
export function versionsOf(packages: readonly string[]): Record<string, string> {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg's own placeholders
  const format = '${Package} ${Version}\n';
  const { stdout } = spawnSync('dpkg-query', ['-W', '-f', format, ...packages], {
    encoding: 'utf8',
  });
  return Object.fromEntries(
    (stdout ?? '')
      .split('\n')
      .map((line) => line.split(' '))
      .filter(([name, version]) => name && version) as [string, string][],
  );
}
