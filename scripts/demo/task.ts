/**
 * The work that the demo's agent is asked for, and the script by which the mock model does it. What the model writes
 * and says is taken from what it read: a read that gave nothing, or something stale, shows in the files and in the
 * last words.
 */
import type { Script } from './mock-model.ts';

export const PROMPT =
  'The greeting test fails. Look into your memory for how we greet, fix src/greeting.js, run the tests, commit, ' +
  'write down what you learned in memory/, and list the work in DELIVERABLES.md.';

/** Facts that stand only in the example workspace's memory, so that saying them proves a read. */
export const CODENAME = 'heron-7';
export const GREETING = 'Hello, {name}!';

export const APPENDED_NOTE = `- 2026-06-01: fixed the greeting of ${CODENAME}`;
export const LEARNED = `# Learned\nThe greeting of ${CODENAME} is "${GREETING}".\n`;

/** The last words of an agent whose every read, write and command worked. */
export const LAST_WORDS = `Fixed ${CODENAME}: tests pass, committed. My memory now ends with "${APPENDED_NOTE}", and says: The greeting of ${CODENAME} is "${GREETING}".`;

const UNKNOWN = '(not found)';

function find(results: readonly string[], pattern: RegExp): string {
  for (const result of results) {
    const match = pattern.exec(result);
    if (match) return match[1] ?? match[0];
  }
  return UNKNOWN;
}

const codename = (results: readonly string[]): string => find(results, /Codename: (\S+)/);
const greeting = (results: readonly string[]): string => find(results, /Greeting: (.+)/).trim();

export const task: Script = {
  steps: [
    () => [{ kind: 'read', path: 'MEMORY.md' }],
    () => [
      { kind: 'read', path: 'memory/project.md' },
      { kind: 'read', path: 'memory/people.md' },
      { kind: 'read', path: 'memory/notes.md' },
    ],
    () => [{ kind: 'read', path: 'src/greeting.js' }],
    (results) => [
      {
        kind: 'edit',
        path: 'src/greeting.js',
        from: "  return 'Hello ' + name;",
        to: `  return \`${greeting(results).replace('{name}', '$' + '{name}')}\`;`,
      },
    ],
    () => [
      {
        kind: 'shell',
        command:
          'node --test >/dev/null && echo tests pass && git commit -qam "Greet as agreed" && git log --oneline',
      },
    ],
    (results) => [
      {
        kind: 'shell',
        command: `echo '- 2026-06-01: fixed the greeting of ${codename(results)}' >> memory/notes.md`,
      },
    ],
    (results) => [
      {
        kind: 'write',
        path: 'memory/learned.md',
        content: `# Learned\nThe greeting of ${codename(results)} is "${greeting(results)}".\n`,
      },
    ],
    (results) => [
      {
        kind: 'write',
        path: 'DELIVERABLES.md',
        content: `# Deliverables\n\n- [x] src/greeting.js greets as agreed (${codename(results)})\n`,
      },
    ],
    () => [{ kind: 'read', path: 'memory/learned.md' }],
    () => [{ kind: 'shell', command: 'tail -n 1 memory/notes.md && cat memory/learned.md DELIVERABLES.md' }],
  ],
  finish(results) {
    const tests = find(results, /tests pass/);
    const committed = find(results, /Greet as agreed/) === UNKNOWN ? UNKNOWN : 'committed';
    const note = find(results.slice(-1), /- 2026-06-01:.*/).trim();
    const learned = find(results.slice(-2), /The greeting of .*/).trim();
    return `Fixed ${codename(results)}: ${tests}, ${committed}. My memory now ends with "${note}", and says: ${learned}`;
  },
};
