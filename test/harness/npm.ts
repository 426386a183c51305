import { execFileSync } from 'node:child_process';

/** npm as it is configured for whoever runs the tests: the test's environment has another home. */
export function npmEnvironment(): Record<string, string> {
  const configured = (key: string) =>
    execFileSync('npm', ['config', 'get', key], { encoding: 'utf8' }).trim();
  const kept = Object.entries(process.env).filter(([name]) =>
    /^(https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS)$/i.test(name),
  ) as [string, string][];
  return {
    ...Object.fromEntries(kept),
    npm_config_cache: configured('cache'),
    npm_config_registry: configured('registry'),
    npm_config_userconfig: configured('userconfig'),
  };
}
