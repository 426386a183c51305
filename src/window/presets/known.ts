/** The presets that come with forget. A new one is a file in agents/ and a line here (docs/presets.md). */
import { aider } from './agents/aider.ts';
import { claude } from './agents/claude.ts';
import { cline } from './agents/cline.ts';
import { codex } from './agents/codex.ts';
import { cursor } from './agents/cursor.ts';
import { gemini } from './agents/gemini.ts';
import { goose } from './agents/goose.ts';
import { hermes } from './agents/hermes.ts';
import { letta } from './agents/letta.ts';
import { mem0 } from './agents/mem0.ts';
import { openclaw } from './agents/openclaw.ts';
import { opencode } from './agents/opencode.ts';
import { pi } from './agents/pi.ts';
import type { Preset } from './preset.ts';

export const KNOWN_PRESETS: readonly Preset[] = [
  ...[claude, codex, openclaw, hermes, gemini, aider, goose],
  ...[opencode, cline, cursor, letta, pi, mem0],
];
