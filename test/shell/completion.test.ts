/** Completion asked of real shells: bash and zsh on a pseudo-terminal (tabs.py presses Tab), fish by `complete -C`. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { disposeWorkspace, forgetExec, makeWorkspace, type Workspace } from '../harness/forget.ts';
import { asUser, environmentOf, forgetFor, readableFor, users } from '../harness/users.ts';

const TIMEOUT = { timeout: 90_000 };
const user = users[0]!;
const tabs = fileURLToPath(new URL('tabs.py', import.meta.url));

/** What is typed before the Tab, and a word or more that must come of it, and what must not. */
interface Question {
  typed: string;
  offers: readonly string[];
  never?: readonly string[];
}

const questions: Question[] = [
  {
    typed: 'forget ',
    offers: ['exec', 'shell', 'mount', 'unmount', 'status', 'doctor', 'report', 'completion'],
  },
  { typed: 'forget stat', offers: ['status'] },
  { typed: 'forget exec --no-', offers: ['--no-defaults', '--no-config'] },
  { typed: 'forget exec --driver ', offers: ['kernel', 'fuse-native'], never: ['only.json'] },
  { typed: 'forget exec --driver=ker', offers: ['--driver=kernel'] },
  { typed: 'forget exec -w onl', offers: ['only-dir'], never: ['only.json'] },
  { typed: 'forget mount onl', offers: ['only-dir'], never: ['only.json'] },
  { typed: 'forget report onl', offers: ['only.json', 'only-dir'] },
  { typed: 'forget completion ', offers: ['bash', 'zsh', 'fish'] },
  { typed: 'forget exec --agent c', offers: ['claude', 'codex', 'cline', 'cursor'] },
  { typed: 'forget exec whoa', offers: ['whoami'] },
  { typed: 'forget exec -- git check', offers: ['checkout'] },
  { typed: 'forget exec -p x git --no-pag', offers: ['--no-pager'] },
  { typed: 'forget exec -- git --no-pager check', offers: ['checkout'] },
  { typed: 'forget exec --hide -- git check', offers: ['checkout'] },
  { typed: 'forget exec -- cat only.', offers: ['only.json'] },
];

describe('completion', () => {
  let workspace: Workspace;
  let programs: string;
  before(() => {
    workspace = makeWorkspace(user, { empty: true });
    mkdirSync(join(workspace.path, 'only-dir'));
    writeFileSync(join(workspace.path, 'only.json'), '{}');
    programs = join(workspace.top, 'programs');
    mkdirSync(programs);
    symlinkSync(forgetFor(user), join(programs, 'forget'));
  });
  after(() => disposeWorkspace(workspace));

  function run(argv: readonly string[], input = ''): string {
    const [program, ...rest] = asUser(user, argv);
    const { PATH, ...environment } = environmentOf(user);
    return execFileSync(program!, rest, {
      cwd: workspace.path,
      // fish makes a directory for its sockets here.
      env: {
        ...environment,
        PATH: [programs, PATH].join(delimiter),
        XDG_RUNTIME_DIR: workspace.top,
        PS1: 'ready> ',
      },
      input,
      encoding: 'utf8',
      timeout: 80_000,
    });
  }

  /** What each line came to, by line. */
  function pressTab(shell: readonly string[], setup: string, lines: readonly string[]): Map<string, string> {
    const typed = `${setup.trim()}\n${lines.map((line) => `${line}\t\n`).join('')}`;
    const shown = run(['python3', readableFor(user, tabs), ...shell], typed);
    const parts = shown.split(/^== /m).slice(1);
    return new Map(
      parts.map((part) => [part.slice(0, part.indexOf('\n')), part.slice(part.indexOf('\n') + 1)]),
    );
  }

  const shells: Record<string, (lines: readonly string[]) => Map<string, string>> = {
    bash: (lines) => {
      const setup = `
PS1='ready> '; bind 'set show-all-if-ambiguous on'; bind 'set bell-style none'; bind 'set page-completions off'
. /usr/share/bash-completion/bash_completion; . <(forget completion bash)`;
      return pressTab(['bash', '--norc', '-i'], setup, lines);
    },
    zsh: (lines) => {
      const dump = join(workspace.top, 'zcompdump');
      const setup = `
PS1='ready> '; LISTMAX=0; setopt no_beep; unsetopt prompt_sp always_last_prompt list_ambiguous
autoload -Uz compinit; compinit -u -d '${dump}'; . <(forget completion zsh)`;
      return pressTab(['zsh', '-f', '-i'], setup, lines);
    },
    fish: (lines) => {
      const script =
        'forget completion fish | source; for line in $argv; echo "== $line"; complete -C $line; end';
      const shown = run(['fish', '-c', script, ...lines]);
      const parts = shown.split(/^== /m).slice(1);
      return new Map(
        parts.map((part) => [part.slice(0, part.indexOf('\n')), part.slice(part.indexOf('\n') + 1)]),
      );
    },
  };

  for (const [shell, ask] of Object.entries(shells)) {
    test(`${shell} completes commands, options, choices, files, and the wrapped command`, TIMEOUT, () => {
      const answers = ask(questions.map(({ typed }) => typed));
      for (const { typed, offers, never = [] } of questions) {
        const answer = answers.get(typed) ?? assert.fail(`${typed}: no answer`);
        for (const word of offers) assert.ok(answer.includes(word), `${typed}: no ${word} in\n${answer}`);
        for (const word of never) assert.ok(!answer.includes(word), `${typed}: ${word} in\n${answer}`);
      }
    });

    test(`${shell} completes the ids of open windows`, TIMEOUT, async () => {
      rmSync(join(workspace.path, 'id.txt'), { force: true });
      let running = 0;
      const ended = forgetExec(workspace, ['sh', '-c', 'echo "$FORGET_WINDOW" >id.txt; exec sleep 60'], {
        started: (pid) => {
          running = pid;
        },
      });
      let id = '';
      while (id === '') {
        await new Promise((resolve) => setTimeout(resolve, 50));
        try {
          id = readFileSync(join(workspace.path, 'id.txt'), 'utf8').trim();
        } catch {
          // not yet
        }
      }
      try {
        const answer = ask(['forget unmount ']).get('forget unmount ')!;
        assert.ok(answer.includes(id), answer);
        if (shell !== 'bash') assert.ok(answer.includes('only-dir'), answer);
        if (shell !== 'bash') assert.match(answer, new RegExp(`${id}.*exec of ${workspace.path}`));
      } finally {
        process.kill(running, 'SIGTERM');
        await ended;
      }
    });
  }

  test(
    'bash completes the name of the wrapped command, and files, without bash-completion too',
    TIMEOUT,
    () => {
      const setup = `PS1='ready> '; bind 'set show-all-if-ambiguous on'; . <(forget completion bash)`;
      const answers = pressTab(['bash', '--norc', '-i'], setup, [
        'forget exec -- whoa',
        'forget exec -- cat only.',
      ]);
      assert.match(answers.get('forget exec -- whoa')!, /whoami/);
      assert.match(answers.get('forget exec -- cat only.')!, /only\.json/);
    },
  );

  test('each command of the help and each of its options is in each script', TIMEOUT, () => {
    const help = run(['forget', '--help']);
    const commands = [...help.slice(help.indexOf('Commands:')).matchAll(/^ {2}([a-z]+) /gm)].map(
      ([, name]) => name!,
    );
    assert.ok(commands.length >= 8, help);
    const options = new Map(
      commands.map((command) => {
        const own = run(['forget', command, '--help']).matchAll(/^ {2}(?:-\w, )?--([a-z-]+)/gm);
        return [command, [...own].map(([, option]) => option!)];
      }),
    );
    for (const shell of Object.keys(shells)) {
      const script = run(['forget', 'completion', shell]);
      for (const command of commands) {
        const start = {
          bash: `\n    '${command}') REPLY`,
          zsh: `\n    ${command})`,
          fish: `-n '__forget_at ${command}'`,
        }[shell]!;
        const end = { bash: ';;', zsh: '\n      ;;', fish: /$(?![\s\S])/ }[shell]!;
        const section = script.slice(script.indexOf(start)).split(end)[0]!;
        const dashes = shell === 'fish' ? '-l ' : '--';
        for (const option of options.get(command)!) {
          assert.match(section, new RegExp(`${dashes}${option}\\b`), `${shell}: ${command} --${option}`);
        }
      }
    }
  });
});
