/**
 * What a preset is: data about one agent, from which covers.ts works out what a window covers. A person's own presets,
 * in their configuration, have the same shape (config-schema.ts).
 */

/** A directory, or a single file, with what is forgotten there. */
export interface Place {
  /**
   * Exactly one of both. A path in the shell's notation, of which `~`, `$NAME` and `${NAME:-WORD}` are known, as the program
   * itself would work it out; `$UID` is there as in bash. A place whose variable is not set, and has no `:-`, is none.
   */
  directory?: string | undefined;
  file?: string | undefined;
  /**
   * In gitignore syntax, relative to `directory`; `!` before a pattern leaves real what it matches; the last match wins. For
   * a home that is the agent's own: all of it, and then what stays real, so that what the next version adds is
   * forgotten too. What is known by name stands there besides: where such a path is a symbolic link (a dotfiles
   * repository), the window covers its target.
   */
  rules?: string[] | undefined;
  /**
   * For a `directory` in one that all share, such as /tmp: it is made, closed to others, where it is missing, and left there.
   * Any other place that is missing is covered by the directory that holds it, which would cut off the sockets in /tmp.
   * Where it is another user's, the program does not use it either, and it is not covered.
   */
  make?: boolean | undefined;
  /** With `make`: a path like `directory`, which the program takes where that is another user's. Made in the same way. */
  otherwise?: string | undefined;
  /** Where this stands: the program and its version, its documentation, an issue. */
  source?: string | undefined;
  /** When somebody looked last: YYYY-MM-DD. */
  date?: string | undefined;
}

/** What a person may add to a preset: `--agent NAME+PART`, or `parts` in their configuration. */
export interface Part {
  /** What it does and what that costs, in one line. */
  title: string;
  /** Said at the start while the part is not chosen: what is done instead, and for whom that is wrong. */
  without?: string | undefined;
  /** Rules after those of the preset's own place with the same directory, or places of their own. */
  places: Place[];
}

export interface Preset {
  /** What `--agent` calls it: letters, digits and `-`. */
  name: string;
  title: string;
  /** Base names of its program. */
  programs: string[];
  /** npm packages that hold its program: for `npx PACKAGE` and `node .../node_modules/PACKAGE/...`. */
  packages?: string[] | undefined;
  places: Place[];
  /** Rules that the workspace gets, with source and date as a place has them. */
  workspace?: { rules: string[]; source?: string | undefined; date?: string | undefined } | undefined;
  /** By name. */
  parts?: Record<string, Part> | undefined;
  /** What stays real on purpose, a line each. */
  real?: string[] | undefined;
  /** What else a person should know, a line each. */
  notes?: string[] | undefined;
}
