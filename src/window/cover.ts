/** What a window covers besides its workspace: directories, each with rules of its own. */
import type { RuleLine } from '../overlay/rules.ts';

export interface Cover {
  /** Byte string, absolute. It need not exist yet, and symbolic links may stand on the way to it. */
  directory: string;
  /** Make it where it is missing, and leave it alone where it is another user's: see `Place` in presets/preset.ts. */
  make?: boolean;
  otherwise?: string | undefined;
  /** In gitignore syntax, relative to the directory; the last match wins. */
  rules: RuleLine[];
  /** Who asked for it, for messages: `preset codex`, `--root`. */
  source: string;
}
