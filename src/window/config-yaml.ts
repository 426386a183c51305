/** YAML 1.2, which JSON is a part of. Loaded only when a configuration is written in it. */
import { parseDocument } from 'yaml';
import { Failure } from './failure.ts';

/** Throws a Failure of one line that names the file. */
export function parseYaml(text: string, name: string): unknown {
  // Unquoted, `*.jsonl` is an alias and `!x` a tag, so that the rule would silently become another.
  const refuse = (problem: Error) => {
    const [line = ''] = problem.message.split('\n');
    throw new Failure(
      `${name}: is not YAML: ${line.replace(/:$/, '')} (a glob that begins with * or ! must stand in quotes)`,
    );
  };
  const document = parseDocument(text);
  const problem = document.errors[0] ?? document.warnings[0];
  if (problem) refuse(problem);
  try {
    return document.toJS();
  } catch (error) {
    return refuse(error as Error);
  }
}
