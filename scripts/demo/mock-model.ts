/**
 * A model server on loopback that needs no model: it drives a real agent through a script, by the tool calls the
 * agent itself offers, and builds each reply from the results those tools really gave. It keeps no state: a request
 * carries the whole conversation, and the number of tool results in it says how far the script has come.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Dialect, dialects } from './dialects.ts';

/** What the model wants done, before it is put into the words of one agent's tools. */
export type Action =
  | { kind: 'read'; path: string }
  | { kind: 'write'; path: string; content: string }
  | { kind: 'edit'; path: string; from: string; to: string }
  | { kind: 'shell'; command: string };

/** One call of an agent's tool. `args` is what the tool's own JSON schema asks for. */
export interface ToolCall {
  name: string;
  args: Record<string, unknown>;
}

/** `steps[n]` gets the tool results so far, oldest first; `finish` gets all of them and has the last word. */
export interface Script {
  steps: readonly ((results: readonly string[]) => Action[])[];
  finish: (results: readonly string[]) => string;
}

export interface MockModel {
  /** `http://127.0.0.1:<port>`, without a path. */
  url: string;
  /** Requests it had no answer for, as `METHOD path`: an agent that sends one is not doing what it was measured to do. */
  unanswered: string[];
  close(): Promise<void>;
}

/** `toolCall` puts an action into the words of the agent that will run it. */
export async function startMockModel(
  script: Script,
  toolCall: (action: Action) => ToolCall,
): Promise<MockModel> {
  const unanswered: string[] = [];
  const server = createServer((request, response) => {
    const path = (request.url ?? '/').replace(/\?.*/, '');
    const dialect = request.method === 'POST' ? dialects.find((each) => each.path.test(path)) : undefined;
    if (!dialect) {
      unanswered.push(`${request.method} ${path}`);
      request.resume();
      sendError(response, 404, `the mock model does not serve ${path}`);
      return;
    }
    answer(request, response, dialect, script, toolCall).catch((error: Error) => {
      unanswered.push(`${request.method} ${path}: ${error.message}`);
      sendError(response, 400, error.message);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    unanswered,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
        server.closeAllConnections();
      }),
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  dialect: Dialect,
  script: Script,
  toolCall: (action: Action) => ToolCall,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const results = dialect.toolResults(JSON.parse(Buffer.concat(chunks).toString('utf8')));
  const actions = nextActions(script, results);
  const reply =
    actions.length > 0
      ? { text: '', calls: actions.map(toolCall), turn: results.length }
      : { text: script.finish(results), calls: [], turn: results.length };
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  for (const { event, data } of dialect.stream(reply)) {
    if (event) response.write(`event: ${event}\n`);
    response.write(`data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`);
  }
  response.end();
}

/** The actions of the step that the conversation has come to: empty when the script is through. */
function nextActions(script: Script, results: readonly string[]): Action[] {
  let answered = 0;
  for (const step of script.steps) {
    const actions = step(results.slice(0, answered));
    if (answered >= results.length) return actions;
    answered += actions.length;
  }
  return [];
}

function sendError(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ error: { code: status, message, type: 'invalid_request_error' } }));
}
