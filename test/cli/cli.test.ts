import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Command } from 'commander';
import { addWindowOptions } from '../../src/cli/window-options.ts';
import { formatSize, parseSize } from '../../src/window/size.ts';
import { asUser, checkout, environmentOf, temporaryDirectory, users } from '../harness/users.ts';

const limit = { timeout: 30_000 };
const user = users[0]!;
const main = join(checkout, 'src/cli/main.ts');
const forgetArgv = [process.execPath, '--import', import.meta.resolve('tsx'), main];

interface Run {
  code: number | null;
  stdout: string;
  stderr: string;
}

function forget(args: string[], cwd = checkout): Run {
  const { status, stdout, stderr } = spawnSync(forgetArgv[0]!, [...forgetArgv.slice(1), ...args], {
    cwd,
    env: environmentOf(user),
    encoding: 'utf8',
    timeout: 20_000,
  });
  return { code: status, stdout, stderr };
}

/** `bytes` is the rest of a shell's command line: the only way to give Node's child an argument that is not UTF-8. */
function forgetBytes(bytes: string): Run {
  const { status, stdout, stderr } = spawnSync('bash', ['-c', `exec "$@" ${bytes}`, 'bash', ...forgetArgv], {
    env: environmentOf(user),
    encoding: 'utf8',
    timeout: 20_000,
  });
  return { code: status, stdout, stderr };
}

function parseExec(line: string[]) {
  const program = new Command().enablePositionalOptions().exitOverride();
  const command = program.command('exec').argument('[command...]').passThroughOptions();
  const options = addWindowOptions(command);
  let argv: string[] = [];
  command.action((words: string[]) => {
    argv = words;
  });
  program.parse(['exec', ...line], { from: 'user' });
  return { argv, options: options() };
}

test(
  'a mistake on the command line is one line, exit code 125, and nothing on standard output',
  limit,
  () => {
    for (const [args, expected] of [
      [['exec', '--bogus', '--', 'true'], /unknown option '--bogus'/],
      [['exec', '--quie', '--', 'true'], /unknown option '--quie' \(Did you mean --quiet\?\)/],
      [['exec', '-p'], /argument missing/],
      [['exec'], /no command given/],
      [['exec', '--upper-size', '10Q', 'true'], /--upper-size: "10Q" is not a size/],
      [['exec', '-w', '/absent', 'true'], /workspace \/absent: does not exist/],
      [['exec', '-w', '/', 'true'], /workspace \/: the whole system/],
      [['exec', '--config', 'absent', 'true'], /absent: no such configuration file/],
      [['frobnicate'], /unknown command 'frobnicate'/],
      [['mount'], /missing required argument 'workspace'/],
      [['mount', '/absent'], /workspace \/absent: does not exist/],
      [['status', 'extra'], /too many arguments/],
    ] as const) {
      const { code, stdout, stderr } = forget([...args]);
      assert.equal(code, 125, `${args.join(' ')}: ${stderr}`);
      assert.equal(stdout, '');
      assert.match(stderr, expected);
      assert.match(stderr, /^forget: [^\n]*\n$/, args.join(' '));
    }
  },
);

test('arguments that are not UTF-8 reach forget as they are, and are shown readably', limit, () => {
  const top = temporaryDirectory('cli', user);
  try {
    writeFileSync(Buffer.from(`${top}/f\xff`, 'latin1'), '');
    const { code, stderr } = forgetBytes(`exec -w '${top}/f'$'\\xff' true`);
    assert.equal(stderr, `forget: workspace ${top}/f\\xff: is not a directory\n`);
    assert.equal(code, 125);
    assert.match(
      forgetBytes(`exec --$'\\n'z$'\\303\\274'rich true`).stderr,
      /^forget: unknown option '--\\nzürich'\n$/,
    );
    assert.match(forgetBytes(`exec -p $'\\xff' true`).stderr, /^forget: glob "\\xff" is not UTF-8; write \?/);
  } finally {
    rmSync(top, { recursive: true });
  }
});

test('a configuration cannot steer the terminal through what forget says of it', limit, () => {
  const top = temporaryDirectory('cli', user);
  try {
    writeFileSync(join(top, '.forgetrc'), '{"\\u001b[2J\\u009b2J\\nkey": 1}');
    const { stderr } = forget(['exec', 'true'], top);
    assert.match(stderr, /^forget: \.forgetrc: "[^"]*" is not a key/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: none may be there
    assert.doesNotMatch(stderr.trimEnd(), /[\x00-\x1f\x7f-\x9f]/);
  } finally {
    rmSync(top, { recursive: true });
  }
});

test('who reads the output no further is no error', limit, () => {
  const forget = join(checkout, 'bin/forget');
  for (const line of ['--help', 'exec --help', 'presets', 'manual-page', 'completion bash']) {
    // The reader is gone before anything is written.
    const script = `{ sleep 0.3; "$0" ${line}; echo "code $?" >&2; } | true`;
    const { stderr } = spawnSync('sh', ['-c', script, forget], {
      env: environmentOf(user),
      encoding: 'utf8',
      timeout: 20_000,
    });
    assert.equal(stderr, 'code 0\n', line);
  }
});

test('each command has help with examples and exit codes, and help and version end with 0', {
  timeout: 90_000,
}, () => {
  const program = forget(['--help']);
  assert.deepEqual([program.code, program.stderr], [0, '']);
  assert.match(program.stdout, /Exit code:/);
  const list = program.stdout.slice(program.stdout.indexOf('Commands:'));
  const commands = [...list.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name!);
  assert.ok(commands.includes('exec') && commands.length >= 8, list);
  for (const command of commands) {
    const { code, stdout, stderr } = forget([command, '--help']);
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /^Examples:\n {2}.*forget/m, command);
    assert.match(stdout, /Exit code:/, command);
  }
  const { version } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { version: string };
  assert.deepEqual(forget(['--version']), { code: 0, stdout: `${version}\n`, stderr: '' });
  assert.equal(forget([]).code, 125);
});

test(
  'options end at the first word that is none, or at "--"; what follows is the command’s own',
  limit,
  () => {
    const rest = ['-p', 'x', '--quiet', '--', '--help'];
    assert.deepEqual(parseExec(['--hide', 'cmd', ...rest]).argv, ['cmd', ...rest]);
    assert.deepEqual(parseExec(['--hide', '--', 'cmd', ...rest]).argv, ['cmd', ...rest]);
    assert.deepEqual(parseExec(['--', '--', 'x']).argv, ['--', 'x']);
    assert.deepEqual(parseExec(['--', '-x']).argv, ['-x']);
    const { options } = parseExec(['--hide', 'cmd', ...rest]);
    assert.deepEqual([options.hide, options.quiet, options.rules], [true, undefined, []]);
  },
);

test('--protect and --exempt keep their order among each other', limit, () => {
  const { options } = parseExec([
    '-p',
    'a',
    '--exempt',
    'b',
    '--protect=c',
    '-pd',
    '--exempt',
    'e',
    'cmd',
    '-p',
    'f',
  ]);
  assert.deepEqual(
    options.rules.map((rule) => `${rule.exempt ? '!' : ''}${rule.pattern}`),
    ['a', '!b', 'c', 'd', '!e'],
  );
});

test('--config, --no-config and neither are three things', limit, () => {
  assert.equal(parseExec(['cmd']).options.config, undefined);
  assert.equal(parseExec(['--no-config', 'cmd']).options.config, false);
  assert.equal(parseExec(['--config', 'f', 'cmd']).options.config, 'f');
  assert.equal(parseExec(['cmd']).options.defaults, undefined);
  assert.equal(parseExec(['--no-defaults', 'cmd']).options.defaults, false);
});

test('a glob beyond ASCII reaches the rules as text', limit, () => {
  const typed = Buffer.from('é*.md', 'utf8').toString('latin1');
  assert.equal(parseExec(['-p', typed, 'cmd']).options.rules[0]!.pattern, 'é*.md');
});

test('sizes are powers of 1024, and what is no limit is refused', limit, () => {
  assert.deepEqual(
    ['64K', '10M', '2G', '1t', '8192'].map((text) => parseSize(text, 'x')),
    [65536, 10 * 1024 ** 2, 2 * 1024 ** 3, 1024 ** 4, 8192],
  );
  for (const text of ['', '0', '1K', '-1', '1.5G', '10MB', 'M', '1e9', '99999999999999T']) {
    assert.throws(() => parseSize(text, 'x'), /^Failure: x: /, text);
  }
  assert.deepEqual([0, 1023, 1536, 10 * 1024 ** 2].map(formatSize), ['0', '1023', '1.5K', '10M']);
});

test('status without a window says so, and gives an empty array as JSON', limit, () => {
  // In a network namespace of its own, where no other test's window is to be found.
  const status = (...args: string[]) => {
    const [program, ...line] = asUser('ordinary', [
      ...['unshare', '--user', '--map-current-user', '--net', '--'],
      ...[...forgetArgv, 'status', ...args],
    ]);
    const options = { cwd: '/', env: environmentOf('ordinary'), encoding: 'utf8', timeout: 20_000 } as const;
    return spawnSync(program!, line, options).stdout;
  };
  assert.equal(status(), 'no open windows\n');
  assert.equal(status('--json'), '[]\n');
});
