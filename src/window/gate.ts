/**
 * The gate: a few lines of shell that forget's child runs before it becomes the command. What waits for the mount
 * must hold no descriptor of the FUSE device: if forget is killed then, nobody answers, the wait cannot be ended, and
 * that very process keeps the device open for ever. So all that touches the mount is done here, behind an exec.
 *
 * Traps: dash knows single-digit descriptors only, so that the channel to forget is one; a variable may be the
 * caller's and exported, so that the only one used is FORGET_ENTRY, which the command never gets.
 */
import { read } from 'node:fs';
import { shutdown } from '../sys/descriptor-passing.ts';
import { close, write } from '../sys/libc.ts';

/** What became of a canary: `held`: written and read back; `refused`: it could not be written; `lost`: something else was read back. */
export type Outcome = 'held' | 'refused' | 'lost';

/** Writes the token, which is parameter 1, to the file that is parameter `n`, reads it back, and says the outcome on stdout. */
const canaryScript = (n: number) => `FORGET_ENTRY=refused
if { echo "$1" >"\${${n}}"; } 2>/dev/null; then
  FORGET_ENTRY=
  { IFS= read -r FORGET_ENTRY <"\${${n}}"; } 2>/dev/null
  if [ "$FORGET_ENTRY" = "$1" ]; then FORGET_ENTRY=held; else FORGET_ENTRY=lost; fi
fi
echo "$FORGET_ENTRY"`;

/** The script for `count` canaries, whose paths are the parameters from `first` on. */
export function canariesScript(first: number, count: number): string {
  return Array.from({ length: count }, (_, i) => canaryScript(first + i)).join('\n');
}

/** What the script said, a line each; undefined where it did not get through. */
export function outcomesIn(said: string, count: number): Outcome[] | undefined {
  const lines = said.split('\n').slice(0, -1);
  const outcomes = lines.filter((line) => line === 'held' || line === 'refused' || line === 'lost');
  return outcomes.length === count ? outcomes : undefined;
}

export interface GateSpec {
  /** One for each root of the window. Paths are byte strings, absolute; the token is letters and digits. */
  canaries: { paths: readonly string[]; token: string };
  /** The descriptor under which the child has its end of the channel. */
  channel: number;
  /** The command's; byte strings, the directory absolute. */
  argv: readonly string[];
  cwd: string;
  /** Said when `cwd` cannot be entered. */
  noDirectory: string;
  /** PWD and OLDPWD as the command is to have them. */
  pwd: string | undefined;
  oldpwd: string | undefined;
  /** The soft limit of open files: a number or `unlimited`; undefined leaves it. */
  openFiles: string | undefined;
}

/**
 * Whoever has another parent than this process must not run: forget died before the parent-death signal was set, and
 * nothing else would end it. A shell also runs scripts without a `#!` line, as execvp does.
 */
const PARENT = (n: number) => `[ "$PPID" = "$${n}" ] || exit 125`;

/** The arguments of a shell that goes through the gate. */
export function gateArguments(spec: GateSpec): string[] {
  const { channel } = spec;
  const variable = (name: string, value: string | undefined, n: number) =>
    value === undefined ? `unset ${name}` : `export ${name}="$${n}"`;
  const { paths, token } = spec.canaries;
  const script = `${PARENT(2)}
{ ${canariesScript(7, paths.length)}
} >&${channel}
read -r FORGET_ENTRY <&${channel} || exit 125
cd -P -- "$3" 2>/dev/null || { printf '%s\\n' "$4" >&2; exit 125; }
${variable('PWD', spec.pwd, 5)}
${variable('OLDPWD', spec.oldpwd, 6)}
${spec.openFiles === undefined ? '' : `ulimit -S -n ${spec.openFiles}`}
shift ${6 + paths.length}
exec "$@" ${channel}>&-`;
  return [
    ...['-c', script, 'forget', token, `${process.pid}`],
    ...[spec.cwd, spec.noDirectory, spec.pwd ?? '', spec.oldpwd ?? '', ...paths, ...spec.argv],
  ];
}

/** The arguments of a shell that runs `argv` in `/`, unless forget has died. */
export function parentGateArguments(argv: readonly string[]): string[] {
  return ['-c', `${PARENT(1)}; shift; exec "$@"`, 'forget', `${process.pid}`, ...argv];
}

/** forget's end of the channel. */
export class GateKeeper {
  /** What became of each canary; undefined where the shell ended before it was through. */
  readonly tested: Promise<Outcome[] | undefined>;
  private socket: number;

  /** Takes over `socket`, and reads it on a pool thread. */
  constructor(socket: number, canaries: number) {
    this.socket = socket;
    const answer = Buffer.alloc(64);
    let said = '';
    this.tested = new Promise((resolve, reject) => {
      const more = () =>
        read(socket, answer, 0, answer.length, null, (error, length) => {
          if (error) return reject(error);
          said += answer.latin1Slice(0, length);
          const outcomes = outcomesIn(said, canaries);
          if (!outcomes && length > 0) return more();
          if (!outcomes) this.close();
          resolve(outcomes);
        });
      more();
    });
  }

  /** Lets the child become the command. A child that has died meanwhile shows in its end. */
  go(): void {
    if (this.socket < 0) return;
    write(this.socket, Buffer.from('\n'), 1);
    this.close();
  }

  /** Ends a child that was not let go. Node's exit waits for pool threads, and so for the answer. */
  cancel(): void {
    if (this.socket >= 0) shutdown(this.socket);
  }

  private close(): void {
    close(this.socket);
    this.socket = -1;
  }
}
