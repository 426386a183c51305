/** The table of docs/presets.md, from the data; `npm run presets` writes it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { KNOWN_PRESETS } from '../../src/window/presets/known.ts';
import type { Place, Preset } from '../../src/window/presets/preset.ts';

export const PAGE = fileURLToPath(new URL('../../docs/presets.md', import.meta.url));
const [BEGIN, END] = ['<!-- presets -->', '<!-- /presets -->'];

/** The page as it should be. */
export function renewed(page: string): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`${PAGE} has lost its marks ${BEGIN} and ${END}`);
  return `${page.slice(0, begin + BEGIN.length)}\n${table()}\n${page.slice(end)}`;
}

function table(): string {
  const head = ['preset', 'recognised as', 'places', 'stays real', 'to choose', 'from'];
  return [head, head.map(() => '---'), ...KNOWN_PRESETS.map(row)]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}

function row(preset: Preset): string[] {
  const programs = [...preset.programs, ...(preset.packages ?? []).map((name) => `npx ${name}`)];
  const workspace = (preset.workspace?.rules ?? []).map(code).join(' ');
  const places = preset.places.map(place);
  if (workspace !== '') places.push(`the workspace: ${workspace}`);
  const parts = Object.entries(preset.parts ?? {});
  const noted = [
    ...preset.places,
    ...(preset.workspace ? [preset.workspace] : []),
    ...parts.flatMap(([, part]) => part.places),
  ];
  const sources = [...new Set(noted.map(({ source, date }) => `${source} (${date})`))];
  return [
    `**${preset.name}** (${preset.title})`,
    programs.map(code).join(', '),
    places.join('<br>'),
    (preset.real ?? []).map(plain).join('<br>'),
    parts.map(([name, { title }]) => `${code(`${preset.name}+${name}`)}: ${plain(title)}`).join('<br>'),
    sources.map(plain).join('<br>'),
  ].map((cell) => cell.replaceAll('|', '\\|'));
}

/** A directory that is forgotten wholly but for what is real, or one of which only some is. */
function place({ directory, file, rules = [] }: Place): string {
  if (directory === undefined) return code(file!);
  const wanted = rules.filter((rule) => !rule.startsWith('!'));
  return rules.includes('/*')
    ? `all of ${code(directory)}`
    : `${code(directory)}: ${wanted.map(code).join(' ')}`;
}

/** Markdown must not take file names for its own marks. */
function plain(text: string): string {
  return text.replace(/[*_<>~]/g, '\\$&');
}

function code(text: string): string {
  return `\`${text}\``;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(PAGE, renewed(readFileSync(PAGE, 'utf8')));
