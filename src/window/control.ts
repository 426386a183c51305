/**
 * The control socket of a window, and its clients. It is an abstract Unix socket, `forget/UID/ID`, which the kernel
 * takes away with the process (docs/decisions.md). One request a line, one answer a line, both JSON:
 *
 *   {"method":"status","params":{}}       {"result":{...}}
 *   {"method":"unmount","params":{}}      {"error":{"code":"refused","message":"..."}}
 *
 * Before its answer a long one comes in parts, {"part":...}, one a line. Who hangs up takes its request back.
 *
 * The window answers its own user and root, whom the kernel names (SO_PEERCRED); what would weaken it is refused
 * to a process inside it.
 */
import type { Socket } from 'node:net';
import { errnoName } from '../sys/errno.ts';
import { close } from '../sys/libc.ts';
import { peerOf } from '../sys/peer.ts';
import { listenAbstract } from '../sys/unix-socket.ts';
import { boundNames, type ControlName, connectTo, socketName } from './control-name.ts';
import { Failure } from './failure.ts';
import { isLooking, type LookingHandlers, type LookingMethods } from './looking-methods.ts';
import type { WindowReport } from './report.ts';
import { isWindowStatus } from './status-shape.ts';
import { pidOf } from './window-id.ts';

/** What a window says of itself. Names are made readable; sizes are bytes. */
export interface WindowStatus {
  id: string;
  kind: 'exec' | 'mount';
  pid: number;
  workspace: string;
  mountpoint: string;
  /** Every place where it is mounted. */
  roots: string[];
  /** Of a mount: the windows that are open in it, the outermost first; `opened` in ISO 8601. */
  windows: { name: string; opened: string }[];
  /** ISO 8601. */
  since: string;
  command?: string[];
  caught: { written: number; created: number; deleted: number; renamed: number; bytes: number };
  upper: { used: number; limit: number; noswap: boolean };
  /** Requests served, by opcode name. */
  requests: Record<string, number>;
  /** Messages that took something back from the kernel, because others changed it. */
  notifications: number;
  memory: { rss: number; nodes: number; descriptors: number };
  user: 'root' | 'user';
  namespace: 'own' | 'shared';
}

/** A window of a mount that was closed: lines for the person, and the report. */
export interface CloseAnswer {
  lines: string[];
  report: WindowReport;
}

export type ControlMethods = {
  status: { params: Record<string, never>; result: WindowStatus };
  unmount: { params: { force: boolean }; result: { lines: string[] } };
  open: { params: { name?: string }; result: { name: string } };
  close: { params: { name?: string }; result: CloseAnswer };
} & LookingMethods;
export type ControlMethod = keyof ControlMethods;

export interface ControlHandlers {
  status(): WindowStatus | Promise<WindowStatus>;
  unmount(params: { force: boolean }): Promise<{ lines: string[] }>;
  /** Of a mount alone. */
  open?(name: string | undefined): Promise<{ name: string }>;
  close?(name: string | undefined): Promise<CloseAnswer>;
  looking?: LookingHandlers;
}

/** Who asks, and how to give an answer that comes in parts. */
export interface Asker {
  inside: boolean;
  /** Aborted when the asker hangs up, and when the window closes; then parts can still be sent. */
  signal: AbortSignal;
  part(value: unknown): void;
}

export interface ControlServer {
  /** Ends the socket and its connections. */
  close(): void;
}

export interface ControlOptions {
  /** The window's id, from `newId()` in window-id.ts. */
  id: string;
  handlers: ControlHandlers;
  /** Is this process inside the window? Then it may ask, and not unmount. */
  peerIsInside(pid: number): boolean;
}

type Answer = { result: unknown } | { error: { code: string; message: string } };

const longestRequest = 64 * 1024;
const longestAnswer = 4 * 1024 * 1024;
/** For a window that is stopped, or whose main thread waits. */
const answerWithin = 2000;
/** node:net is 4 ms to load and start, which a short command need not wait for: until then clients queue. */
const idleBeforeAnswers = 50;

/** The window ended while it was asked. */
export class WindowGone extends Failure {}

/** The socket can be connected to at once. It does not keep the process alive. Throws a Failure. */
export async function serveControl(options: ControlOptions): Promise<ControlServer> {
  const name = socketName({ uid: process.geteuid!(), id: options.id });
  const fd = listenAbstract(name);
  if (fd < 0) throw new Failure(`the control socket @${name} gave ${errnoName(-fd)}`);
  let end = () => {
    clearTimeout(timer);
    close(fd);
  };
  const timer = setTimeout(() => {
    end = answerOn(fd, options);
  }, idleBeforeAnswers);
  timer.unref();
  return { close: () => end() };
}

/** Takes the listening descriptor over; returns what ends it. */
function answerOn(fd: number, options: ControlOptions): () => void {
  const { createServer } = process.getBuiltinModule('node:net');
  const connections = new Set<Socket>();
  const hangUps = new Set<AbortController>();
  const server = createServer((socket) => {
    // Node has no public accessor for an accepted socket's descriptor.
    const accepted = (socket as unknown as { _handle: { fd: number } })._handle.fd;
    const peer = peerOf(accepted);
    if (typeof peer === 'number' || (peer.uid !== 0 && peer.uid !== process.geteuid!())) {
      socket.destroy();
      return;
    }
    socket.unref();
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    // A client that went away needs no answer.
    socket.on('error', () => socket.destroy());
    const hangUp = new AbortController();
    hangUps.add(hangUp);
    socket.once('close', () => {
      hangUp.abort();
      hangUps.delete(hangUp);
    });
    const send = (value: unknown) => {
      if (!socket.destroyed) socket.write(`${JSON.stringify(value)}\n`);
    };
    onLines(socket, longestRequest, async (line) => {
      const part = (value: unknown) => send({ part: value });
      send(await answerTo(line, peer.pid, options, { signal: hangUp.signal, part }));
    });
  });
  // One connection was not accepted (no descriptor was free, say): its client is told so, and the window goes on.
  server.on('error', () => {});
  server.listen({ fd });
  server.unref();
  return () => {
    server.close();
    for (const hangUp of hangUps) hangUp.abort();
    for (const socket of connections) socket.destroy();
  };
}

async function answerTo(
  line: string,
  pid: number,
  options: ControlOptions,
  asker: Omit<Asker, 'inside'>,
): Promise<Answer> {
  let request: { method?: unknown; params?: { force?: unknown; name?: unknown } | null };
  try {
    request = Object(JSON.parse(line));
  } catch {
    return { error: { code: 'malformed', message: 'a request is one line of JSON' } };
  }
  try {
    if (request.method === 'status') return { result: await options.handlers.status() };
    const { handlers } = options;
    const weakens = request.method === 'unmount' || request.method === 'close';
    if (weakens && options.peerIsInside(pid)) {
      return { error: { code: 'refused', message: 'a process inside the window may not close it' } };
    }
    const { looking } = handlers;
    if (looking && isLooking(request.method)) {
      const inside = options.peerIsInside(pid);
      if (inside && request.method === 'keep') {
        return {
          error: { code: 'refused', message: 'a process inside the window may not keep anything of it' },
        };
      }
      const handler = looking[request.method] as (params: object, asker: Asker) => Promise<unknown>;
      return { result: await handler(Object(request.params), { ...asker, inside }) };
    }
    if (request.method === 'unmount') {
      return { result: await handlers.unmount({ force: request.params?.force === true }) };
    }
    const name = request.params?.name;
    const given = typeof name === 'string' ? name : undefined;
    if (request.method === 'open' && handlers.open) return { result: await handlers.open(given) };
    if (request.method === 'close' && handlers.close) return { result: await handlers.close(given) };
    return { error: { code: 'unknown', message: `no such request: ${String(request.method)}` } };
  } catch (error) {
    return { error: { code: 'failed', message: error instanceof Error ? error.message : String(error) } };
  }
}

export interface RequestOptions {
  /** Gets each part of an answer that comes in parts. */
  onPart?: (part: unknown) => void;
  /** Milliseconds without a word until the window is given up; 0 for never. */
  patience?: number;
}

/** Asks one window. Throws a Failure when there is none of that id, or it refuses, fails or does not answer. */
export async function request<M extends ControlMethod>(
  id: string,
  method: M,
  params: ControlMethods[M]['params'],
  options: RequestOptions = {},
): Promise<ControlMethods[M]['result']> {
  // Unmounting may wait for the last writes.
  const timeoutMs = options.patience ?? (method === 'status' ? answerWithin : 60_000);
  for (const name of boundNames().filter((bound) => bound.id === id)) {
    const answer = await ask(name, method, params, timeoutMs, options.onPart);
    if (answer === 'foreign') continue;
    if (answer === 'gone') throw new WindowGone(`window ${id} is gone`);
    if (answer === 'silent') throw new Failure(`window ${id} does not answer`);
    if ('error' in answer) throw new Failure(`window ${id}: ${answer.error.message}`);
    return answer.result as ControlMethods[M]['result'];
  }
  throw new Failure(`no window ${id}; forget status lists those there are`);
}

/**
 * The process that serves a window, as the kernel knows it: the number in the id may be another's here, where a
 * container shares this network. Undefined where it is gone, in another pid namespace, or takes no connection.
 */
export function serverOf(id: string): number | undefined {
  for (const name of boundNames().filter((bound) => bound.id === id)) {
    const fd = connectTo(name);
    if (typeof fd === 'string') continue;
    const peer = peerOf(fd);
    close(fd);
    if (typeof peer === 'object' && peer.pid > 0) return peer.pid;
  }
  return undefined;
}

/** Whether the window answers within the time. */
export async function answers(id: string, withinMs: number): Promise<boolean> {
  for (const name of boundNames().filter((bound) => bound.id === id)) {
    const answer = await ask(name, 'status', {}, withinMs);
    if (typeof answer === 'object') return true;
  }
  return false;
}

/** Every window of this user, and for root everyone's. One that lives and does not answer is handed to `onSilent`. */
export async function listWindows(onSilent?: (id: string, pid: number) => void): Promise<WindowStatus[]> {
  const asked = boundNames().map(async (name) => {
    const answer = await ask(name, 'status', {}, answerWithin);
    if (answer === 'gone' || answer === 'foreign') return undefined;
    // Another user may answer root with anything.
    if (answer !== 'silent' && 'result' in answer && isWindowStatus(answer.result)) {
      return { ...answer.result, id: name.id };
    }
    onSilent?.(name.id, pidOf(name.id));
    return undefined;
  });
  return (await Promise.all(asked)).filter((status) => status !== undefined);
}

/** `gone` where the window ended, `silent` where it did not answer in time, `foreign` where it is not what its name says. */
async function ask<M extends ControlMethod>(
  name: ControlName,
  method: M,
  params: ControlMethods[M]['params'],
  timeoutMs: number,
  onPart?: (part: unknown) => void,
): Promise<Answer | 'gone' | 'silent' | 'foreign'> {
  const fd = connectTo(name);
  if (fd === 'busy') return 'silent';
  if (typeof fd === 'string') return fd;
  const { Socket } = await import('node:net');
  const socket = new Socket({ fd, readable: true, writable: true });
  try {
    return await new Promise((resolve) => {
      socket.setTimeout(timeoutMs, () => resolve('silent'));
      // The kernel resets the connections of a window that ends.
      socket.once('error', () => resolve('gone'));
      socket.once('close', () => resolve('gone'));
      onLines(socket, longestAnswer, (line) => {
        const answer = answerIn(line);
        if ('part' in answer) onPart?.(answer.part);
        else resolve(answer);
      });
      socket.write(`${JSON.stringify({ method, params })}\n`);
    });
  } finally {
    socket.destroy();
  }
}

function answerIn(line: string): Answer | { part: unknown } {
  const malformed: Answer = { error: { code: 'malformed', message: 'it gave an answer that is none' } };
  try {
    const answer = Object(JSON.parse(line)) as Answer | { part: unknown };
    if ('result' in answer || 'part' in answer) return answer;
    return typeof answer.error?.message === 'string' ? answer : malformed;
  } catch {
    return malformed;
  }
}

/** Hands over each line; ends a connection whose line grows past `longest` characters. */
function onLines(socket: Socket, longest: number, line: (text: string) => void): void {
  let pending = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => {
    const lines = (pending + chunk).split('\n');
    pending = lines.pop()!;
    if (pending.length > longest) socket.destroy();
    else lines.forEach(line);
  });
}
