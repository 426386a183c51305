// Does the commits of a repository again as an agent would: reads, writes whole files, commits, and all the while keeps a
// transcript that quotes everything, a daily note and a list of deliverables. Runs inside the window, in the workspace.
//
//   node replay-agent.mjs HABIT REPOSITORY COMMIT...
//
// HABIT is when the notes are written and what is in them: `after` the work, with the commit's message and the longest
// lines of the change word by word; before it, as a `plan`, with the code in a fenced block; or `asked`: as `after`, and
// the person's prompt is the commit's whole message.
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

const [habit, repository, ...commits] = process.argv.slice(2);
mkdirSync('.git/info', { recursive: true });
appendFileSync('.git/info/exclude', '/memory/\n/logs/\n/DELIVERABLES.md\n');
const git = (...args) =>
  execFileSync('git', ['-c', 'safe.directory=*', ...args], { encoding: 'utf8', maxBuffer: 64 << 20 });
const source = (...args) => git('--git-dir', repository, ...args);

mkdirSync('logs', { recursive: true });
mkdirSync('memory', { recursive: true });
const log = (line) => appendFileSync('logs/session.jsonl', `${JSON.stringify(line)}\n`);
const say = (role, ...content) => log({ type: role, message: { role, content } });
const tool = (name, input, output) => {
  say('assistant', { type: 'tool_use', name, input });
  log({
    type: 'user',
    message: { role: 'user', content: [{ type: 'tool_result', content: output }] },
    toolUseResult: { ...input, output },
  });
};
const note = (text) => appendFileSync('memory/2026-11-30.md', text);

for (const commit of commits) {
  const [subject, ...rest] = source('log', '-1', '--format=%B', commit).trim().split('\n');
  const body = rest.join('\n').trim();
  say('user', { type: 'text', text: habit === 'asked' ? `${subject}\n\n${body}` : `${subject}, please.` });
  const changes = source('diff', '--name-status', '--no-renames', `${commit}^`, commit)
    .trim()
    .split('\n')
    .filter(Boolean);
  const paths = changes.map((line) => line.split('\t')[1]);
  const added = source('diff', '--unified=0', `${commit}^`, commit)
    .split('\n')
    .filter((line) => /^\+[^+]/.test(line))
    .map((line) => line.slice(1));
  // What somebody who works writes down: what it is about, where, a piece of the code, and what is worth remembering word by word.
  const longest = [...added].sort((a, b) => b.length - a.length).slice(0, 3);
  const pieces = [
    `\n## ${subject}`,
    `Files: ${paths.join(', ')}`,
    `~~~~\n${added.slice(0, 20).join('\n')}\n~~~~`,
  ];
  if (habit !== 'plan') pieces.push(body, longest.join('\n'));
  const told = `${pieces.join('\n\n')}\n`;
  if (habit === 'plan') note(told);
  for (const [index, path] of paths.entries()) {
    if (changes[index].startsWith('D')) {
      rmSync(path, { force: true });
      continue;
    }
    let now;
    try {
      now = execFileSync('git', ['--git-dir', repository, 'show', `${commit}:${path}`], {
        maxBuffer: 64 << 20,
      });
    } catch {
      continue; // a submodule
    }
    if (!changes[index].startsWith('A')) {
      try {
        tool('Read', { file_path: path }, readFileSync(path, 'utf8'));
      } catch {} // it was renamed by a merge that is not replayed
    }
    mkdirSync(dirname(path), { recursive: true });
    tool('Write', { file_path: path, content: now.toString('utf8') }, 'ok');
    writeFileSync(path, now);
  }
  git('add', '--all');
  tool(
    'Bash',
    { command: `git commit -m '${subject}\n\n${body}'` },
    git('commit', '--quiet', '--allow-empty', '-m', `${subject}\n\n${body}`),
  );
  tool('Bash', { command: 'git show' }, source('show', commit));
  if (habit !== 'plan') note(told);
  say('assistant', {
    type: 'text',
    text: `Done: ${subject}. ${body}\n\n\`\`\`\n${added.slice(0, 40).join('\n')}\n\`\`\``,
  });
  appendFileSync('DELIVERABLES.md', `- [x] ${subject}\n`);
}
