/** `forget shell` with real shells on a real pseudo-terminal; typist.py is the person at it. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withWorkspace } from '../cases/window.ts';
import { protectedDifferences, type Workspace } from '../harness/forget.ts';
import { forgetFor, idsOf, readableFor, users } from '../harness/users.ts';
import { markedProcesses, type RunResult, runWatched } from '../harness/watchdog.ts';

const typist = fileURLToPath(new URL('typist.py', import.meta.url));

interface Person {
  shell: string;
  /** Their own files, by path below their home, which is beside the workspace. */
  files: Record<string, string>;
  env?: (home: string) => Record<string, string>;
}

/** Their own files set the prompt anew for each line, as starship and the like do, and define `mine`. */
const people: Person[] = [
  {
    shell: 'bash',
    files: { '.bashrc': `PROMPT_COMMAND='PS1="own$ "'; mine() { echo "mine status $?"; }` },
  },
  {
    shell: 'zsh',
    files: {
      '.zshrc': `precmd() { PS1='own%% ' }; precmd_functions+=(precmd); mine() { echo "mine status $?" }`,
    },
  },
  {
    shell: 'fish',
    files: {
      '.config/fish/config.fish': `
        set -g fish_greeting
        function fish_prompt; test $status = 0; and printf 'own> '; or printf 'failed> '; end
        function mine; echo "mine status $status"; end`,
    },
  },
  {
    shell: 'dash',
    files: { rc: `PS1='own$ '; mine() { echo "mine status $?"; }` },
    env: (home) => ({ OWN_RC: join(home, 'rc'), ENV: '$OWN_RC' }),
  },
];

/** What the terminal showed while the lines were typed to `forget shell`. */
function type(workspace: Workspace, person: Person, lines: readonly string[]): Promise<RunResult> {
  const home = join(workspace.top, 'home');
  const { uid, gid } = idsOf(workspace.user);
  for (const [path, content] of Object.entries(person.files)) {
    const file = join(home, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${content}\n`);
  }
  for (const directory of ['.config', 'run'])
    mkdirSync(join(home, directory), { recursive: true, mode: 0o700 });
  execFileSync('chown', ['-R', `${uid}:${gid}`, home]);
  const forget = [forgetFor(workspace.user), 'shell', '--verbose'];
  return runWatched(['python3', readableFor(workspace.user, typist), ...forget], {
    user: workspace.user,
    cwd: workspace.path,
    env: {
      HOME: home,
      XDG_CONFIG_HOME: join(home, '.config'),
      XDG_DATA_HOME: join(home, '.local'),
      XDG_RUNTIME_DIR: join(home, 'run'),
      SHELL: `/usr/bin/${person.shell}`,
      ...person.env?.(home),
    },
    input: `${lines.join('\n')}\n`,
    started: (_pid, mark) => workspace.marks.push(mark),
  });
}

for (const person of people) {
  withWorkspace(
    `${person.shell} starts with its own configuration, every prompt marked, and ends with its exit code`,
    async (workspace) => {
      const lines = ['false', 'mine', 'echo "id [$FORGET_WINDOW]"', 'echo caught >memory/notes.md', 'exit 7'];
      const result = await type(workspace, person, lines);
      const shown = result.stdout.replaceAll(/^#? +/gm, '');
      assert.equal(result.code, 7, `${shown}${result.stderr}`);
      const character = { zsh: '%', fish: '>' }[person.shell] ?? '$';
      lines.forEach((line, at) => {
        const own = person.shell === 'fish' && at === 1 ? 'failed' : 'own';
        assert.ok(shown.includes(`(forget) ${own}${character} ${line}\n`), `${line}: ${shown}`);
      });
      assert.doesNotMatch(shown, /\(forget\) \(forget\)/);
      assert.match(shown, /mine status 1/);
      assert.match(shown, /id \[\d+-[0-9a-f]{4}\]/);
      assert.match(shown, /memory\/notes\.md .*written/);
      assert.deepEqual(protectedDifferences(workspace), []);
      assert.deepEqual(markedProcesses(result.mark), []);
    },
    person.shell === 'bash' ? {} : { users: users.slice(-1) },
  );
}

withWorkspace(
  'a shell inside that shell has the person’s own ZDOTDIR and ENV',
  async (workspace) => {
    const look = `env | grep -E '^(ZDOTDIR|ENV|FORGET_(ZDOTDIR|ENV|ENTRY))='; echo "looked"`;
    const [bash, zsh, , dash] = people as [Person, Person, Person, Person];
    assert.doesNotMatch((await type(workspace, bash, [look, 'exit'])).stdout, /^(ZDOTDIR|ENV|FORGET_)/m);
    assert.doesNotMatch((await type(workspace, zsh, [look, 'exit'])).stdout, /^(ZDOTDIR|ENV|FORGET_)/m);

    const home = join(workspace.top, 'home');
    const own: Person = {
      shell: 'zsh',
      files: { 'z/.zshrc': `PS1='own%% '`, 'z/.zshenv': 'export SEEN=zshenv' },
      env: () => ({ ZDOTDIR: join(home, 'z') }),
    };
    const inZsh = (await type(workspace, own, [`${look}; echo "seen $SEEN"`, 'exit'])).stdout;
    assert.deepEqual(inZsh.match(/^(ZDOTDIR|ENV|FORGET_).*/gm), [`ZDOTDIR=${home}/z`], inZsh);
    assert.match(inZsh, /\(forget\) own%/);
    assert.match(inZsh, /^seen zshenv/m);
    const inDash = (await type(workspace, dash, [look, 'exit'])).stdout;
    assert.deepEqual(inDash.match(/^(ZDOTDIR|ENV|FORGET_).*/gm), [`ENV=${home}/rc`], inDash);
  },
  { users: users.slice(-1) },
);

withWorkspace(
  'without a terminal the shell runs what it reads; another shell gets no mark, and that is said',
  async (workspace) => {
    const run = (shell: string, args: string[] = []) =>
      runWatched([forgetFor(workspace.user), 'shell', ...args], {
        user: workspace.user,
        cwd: workspace.path,
        env: shell === '' ? {} : { SHELL: shell },
        input: 'echo x >memory/new; cat memory/new; exit 5\n',
      });
    for (const shell of ['/usr/bin/zsh', '']) {
      const { stdout, stderr, code } = await run(shell, ['--quiet']);
      assert.deepEqual([stdout, stderr, code], ['x\n', '', 5], shell);
    }
    const other = await run('/usr/bin/env');
    assert.match(other.stdout, /^FORGET_WINDOW=\d+-[0-9a-f]{4}$/m);
    assert.match(other.stderr, /^forget: \/usr\/bin\/env: its prompt cannot be marked; FORGET_WINDOW/);
    const absent = await run('/absent/shell');
    assert.deepEqual([absent.code, absent.stdout], [127, '']);
    assert.match(absent.stderr, /forget: \/absent\/shell: no such file or directory/);
    assert.deepEqual(protectedDifferences(workspace), []);
  },
);

withWorkspace('a window in a window is refused, and the line says what to do', async (workspace) => {
  const inner = `"$1" exec -- true 2>&1; echo "code $?"; echo true | "$1" shell 2>&1; echo "code $?"`;
  const forget = forgetFor(workspace.user);
  const { stdout } = await runWatched([forget, 'exec', '--quiet', '--', 'sh', '-c', inner, 'sh', forget], {
    user: workspace.user,
    cwd: workspace.path,
  });
  const line = `forget: workspace ${workspace.path}: lies in a forget window already (mounted at ${workspace.path}); close that one first, or work in it as it is\ncode 125\n`;
  assert.equal(stdout, line + line);
});
