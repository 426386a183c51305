import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkout, forgetFor } from '../harness/users.ts';

test('the manual page has each command with its options and examples, and groff finds no fault in it', {
  timeout: 30_000,
}, () => {
  const page = join(checkout, 'man/forget.1');
  const { stdout, stderr, status } = spawnSync(
    'groff',
    ['-man', '-ww', '-Tascii', '-P-cbou', '-rLL=100n', page],
    {
      encoding: 'utf8',
    },
  );
  assert.deepEqual([status, stderr], [0, '']);
  const help = execFileSync(forgetFor('root'), ['--help'], { encoding: 'utf8' });
  const commands = [...help.slice(help.indexOf('Commands:')).matchAll(/^ {2}([a-z]+) /gm)].map(
    ([, name]) => name!,
  );
  for (const command of commands) {
    const at = stdout.indexOf(`\nFORGET ${command.toUpperCase()}\n`);
    assert.ok(at > 0, `${command} is not in the page`);
    const section = stdout.slice(at + 1).split(/\n(?=[A-Z])/)[0]!;
    assert.match(section, /Examples:\n {11}\S/, section);
    assert.match(section, /Exit +code:/, section);
    const own = execFileSync(forgetFor('root'), [command, '--help'], { encoding: 'utf8' });
    for (const [, option] of own.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm))
      assert.ok(section.includes(option!), option);
  }
  const { man, files } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as {
    man: string;
    files: string[];
  };
  assert.equal(man, 'man/forget.1');
  for (const shipped of ['man', 'share']) assert.ok(files.includes(shipped));
});
