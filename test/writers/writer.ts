/** One writer program as tests: the same output as on a plain directory, the same unprotected tree, memory untouched. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type ComparisonOptions, compareWithPlain } from '../harness/forget.ts';
import { readableFor, users } from '../harness/users.ts';

export interface Writer {
  /** What it does, to end the sentence "... works in a window as in a plain directory". */
  name: string;
  interpreter: string;
  /** A file name under test/writers/programs. */
  program: string;
  arguments?: readonly string[];
  comparison?: ComparisonOptions;
  /** Lines of its output that differ by design. */
  differs?: RegExp;
}

// The index holds inode numbers and times of the work tree; `git ls-files -s` in the output compares what matters.
// vim's undo files hold times.
const varies = (path: string) => /(^|\/)\.git\/(.*\/)?index$/.test(path) || path.endsWith('.un~');

const directory = fileURLToPath(new URL('./programs', import.meta.url));

export function testWriter(writer: Writer): void {
  const comparable = (text: string) =>
    text
      .split('\n')
      .filter((line) => !writer.differs?.test(line))
      .join('\n');
  for (const user of users) {
    test(`${writer.name} works in a window as in a plain directory, as ${user}`, {
      timeout: 300_000,
    }, async () => {
      // The whole directory has to be readable: programs import their neighbours.
      const programs = readableFor(user, directory);
      const argv = [writer.interpreter, `${programs}/${writer.program}`, ...(writer.arguments ?? [])];
      const result = await compareWithPlain(user, argv, {
        timeout: 120_000,
        contentVaries: varies,
        ...writer.comparison,
      });
      assert.equal(
        result.plain.code,
        0,
        `the program itself fails: ${result.plain.stdout}${result.plain.stderr}`,
      );
      assert.equal(comparable(result.inside.stdout), comparable(result.plain.stdout));
      assert.equal(result.inside.stderr, result.plain.stderr);
      assert.equal(result.inside.code, result.plain.code);
      assert.deepEqual(result.protectedPart, [], 'the protected part of the lower changed');
      assert.deepEqual(
        result.unprotectedPart,
        [],
        'the unprotected part is not what the program leaves without forget',
      );
    });
  }
}
