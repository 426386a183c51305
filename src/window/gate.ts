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

/**
 * What became of the canary: `held`: written and read back; `refused`: it could not be written; `lost`: something
 * else was read back; `ended`: the shell ended before it had an answer.
 */
export type Outcome = 'held' | 'refused' | 'lost' | 'ended';

/** Writes the token `$2` to the file `$1`, reads it back, and says the outcome on stdout. */
export const CANARY_SCRIPT = `FORGET_ENTRY=refused
if { echo "$2" >"$1"; } 2>/dev/null; then
  FORGET_ENTRY=
  { IFS= read -r FORGET_ENTRY <"$1"; } 2>/dev/null
  if [ "$FORGET_ENTRY" = "$2" ]; then FORGET_ENTRY=held; else FORGET_ENTRY=lost; fi
fi
echo "$FORGET_ENTRY"`;

export interface GateSpec {
  canary: { path: string; token: string };
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
  const script = `${PARENT(3)}
{ ${CANARY_SCRIPT}
} >&${channel}
read -r FORGET_ENTRY <&${channel} || exit 125
cd -P -- "$4" 2>/dev/null || { printf '%s\\n' "$5" >&2; exit 125; }
${variable('PWD', spec.pwd, 6)}
${variable('OLDPWD', spec.oldpwd, 7)}
${spec.openFiles === undefined ? '' : `ulimit -S -n ${spec.openFiles}`}
shift 7
exec "$@" ${channel}>&-`;
  const { path, token } = spec.canary;
  return [
    ...['-c', script, 'forget', path, token, `${process.pid}`],
    ...[spec.cwd, spec.noDirectory, spec.pwd ?? '', spec.oldpwd ?? '', ...spec.argv],
  ];
}

/** The arguments of a shell that runs `argv` in `/`, unless forget has died. */
export function parentGateArguments(argv: readonly string[]): string[] {
  return ['-c', `${PARENT(1)}; shift; exec "$@"`, 'forget', `${process.pid}`, ...argv];
}

/** forget's end of the channel. */
export class GateKeeper {
  readonly tested: Promise<Outcome>;
  private socket: number;

  /** Takes over `socket`, and reads it on a pool thread. */
  constructor(socket: number) {
    this.socket = socket;
    const answer = Buffer.alloc(16);
    this.tested = new Promise((resolve, reject) => {
      read(socket, answer, 0, answer.length, null, (error, length) => {
        if (error) return reject(error);
        const outcome = answer.latin1Slice(0, length).trimEnd();
        if (outcome === 'held' || outcome === 'refused' || outcome === 'lost') return resolve(outcome);
        this.close();
        resolve('ended');
      });
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
