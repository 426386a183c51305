/**
 * Installs an agent on first use: none is a dependency of this package, and `npm ci` knows nothing of them. Each has
 * a lockfile in agents/, and lands in .cache/agents of the checkout under a name that holds the lockfile's hash.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Agent } from './agents.ts';

const recipes = fileURLToPath(new URL('agents', import.meta.url));
const cache = fileURLToPath(new URL('../../.cache/agents', import.meta.url));

/** The agent is not in the cache and cannot be fetched, or is not made for this processor: nothing is wrong with forget. */
export class AgentUnavailable extends Error {}

/**
 * The argv that starts the agent's program, installed first if the cache lacks it (seconds, and the npm registry).
 * `say` gets a line when that happens. Throws AgentUnavailable when the registry cannot be reached.
 */
export function installAgent(agent: Agent, say: (line: string) => void): string[] {
  const recipe = join(recipes, agent.name);
  const lock = readFileSync(join(recipe, 'package-lock.json'));
  const version = createHash('sha256').update(lock).digest('hex').slice(0, 12);
  const installed = join(cache, `${agent.name}-${version}`);
  if (!existsSync(installed)) {
    say(`installing ${agent.name} into ${installed} (once)`);
    mkdirSync(cache, { recursive: true });
    const fresh = mkdtempSync(`${installed}.`);
    try {
      cpSync(recipe, fresh, { recursive: true });
      npmCi(agent, fresh);
      chmodSync(fresh, 0o755);
      renameSync(fresh, installed);
    } catch (error) {
      rmSync(fresh, { recursive: true, force: true });
      // Two test files may install the same agent at once: the second finds the first one's directory.
      if (!existsSync(installed)) throw error;
    }
  }
  const modules = join(installed, 'node_modules');
  const program = join(modules, agent.program);
  const node = agent.node === undefined ? process.execPath : join(modules, agent.node);
  if (![program, node].every((file) => existsSync(file))) {
    throw new AgentUnavailable(`${agent.name} has no program for ${process.arch}`);
  }
  return /\.m?js$/.test(program) ? [node, program] : [program];
}

function npmCi(agent: Agent, directory: string): void {
  const npm = spawnSync('npm', ['ci', '--ignore-scripts', '--include=optional', '--prefix', directory], {
    cwd: directory,
    encoding: 'utf8',
    timeout: 300_000,
  });
  if (npm.error) throw new AgentUnavailable(`cannot install ${agent.name}: ${npm.error.message}`);
  if (npm.status === 0) return;
  const why = npm.stderr.trim();
  const unreachable =
    /code (E(NOTFOUND|CONNREFUSED|CONNRESET|TIMEDOUT|AI_AGAIN|NETUNREACH|HOSTUNREACH)|ERR_SOCKET_TIMEOUT|ENOTCACHED)/;
  if (unreachable.test(why)) {
    const hint = 'It is needed once: afterwards the agent is in .cache/agents of the checkout.';
    const [firstLine] = why.split('\n').filter((line) => !/ (code|syscall|errno) /.test(line));
    throw new AgentUnavailable(
      `cannot install ${agent.name}: the npm registry is not reachable. ${hint} (${firstLine})`,
    );
  }
  throw new Error(`npm ci for ${agent.name} failed:\n${why}`);
}
