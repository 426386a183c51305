/**
 * The model APIs that the agents speak, as far as a scripted model needs them: the tool results in a request, and a
 * reply as server-sent events. Pure: no I/O. Shapes read from the requests of the pinned agent versions.
 */
import type { ToolCall } from './mock-model.ts';

/** `turn` makes ids unique within a conversation. */
export interface Reply {
  text: string;
  calls: ToolCall[];
  turn: number;
}

/** A string in `data` is sent as it is, anything else as JSON. */
export interface ServerEvent {
  event?: string;
  data: unknown;
}

export interface Dialect {
  path: RegExp;
  /** The results of the tool calls since the person last spoke, oldest first. */
  toolResults(body: unknown): string[];
  stream(reply: Reply): ServerEvent[];
}

const MODEL = 'mock';

/** OpenClaw ends each request, also one in the middle of its tool calls, with a user message of its own that begins so. */
const RUNTIME_CONTEXT = '<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>';

/** OpenAI chat completions: pi, OpenClaw, and most agents that take a custom provider. */
const chatCompletions: Dialect = {
  path: /\/chat\/completions$/,
  toolResults(body) {
    const { messages } = body as { messages: { role: string; content: unknown }[] };
    const isSpoken = ({ role, content }: { role: string; content: unknown }): boolean =>
      role === 'user' && !textOf(content).startsWith(RUNTIME_CONTEXT);
    return sinceLast(messages, isSpoken)
      .filter((message) => message.role === 'tool')
      .map((message) => textOf(message.content));
  },
  stream(reply) {
    const chunk = (delta: object, finish: string | null = null): ServerEvent => ({
      data: {
        id: `chatcmpl-${reply.turn}`,
        object: 'chat.completion.chunk',
        created: 0,
        model: MODEL,
        choices: [{ index: 0, delta, finish_reason: finish }],
      },
    });
    const calls = reply.calls.map((call, index) => ({
      index,
      id: callId(reply, index),
      type: 'function',
      function: { name: call.name, arguments: JSON.stringify(call.args) },
    }));
    return [
      chunk({ role: 'assistant', content: reply.text }),
      ...calls.map((call) => chunk({ tool_calls: [call] })),
      chunk({}, calls.length > 0 ? 'tool_calls' : 'stop'),
      { data: '[DONE]' },
    ];
  },
};

/** OpenAI responses: codex. */
const responses: Dialect = {
  path: /\/responses$/,
  toolResults(body) {
    const { input } = body as { input: { type: string; role?: string; output?: unknown }[] };
    return sinceLast(input, (item) => item.type === 'message' && item.role === 'user')
      .filter((item) => item.type === 'function_call_output')
      .map((item) => textOf(item.output));
  },
  stream(reply) {
    const id = `resp_${reply.turn}`;
    const items: object[] = reply.calls.map((call, index) => ({
      type: 'function_call',
      id: `fc_${callId(reply, index)}`,
      call_id: callId(reply, index),
      name: call.name,
      arguments: JSON.stringify(call.args),
    }));
    if (reply.text) {
      const content = [{ type: 'output_text', text: reply.text, annotations: [] }];
      items.push({ type: 'message', id: `msg_${reply.turn}`, role: 'assistant', content });
    }
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
    const events = [
      { type: 'response.created', response: { id } },
      ...items.map((item, index) => ({ type: 'response.output_item.done', output_index: index, item })),
      { type: 'response.completed', response: { id, usage } },
    ];
    return events.map((data) => ({ event: data.type, data }));
  },
};

interface GeminiPart {
  text?: string;
  functionResponse?: { response: Record<string, unknown> };
}

/** Gemini's generateContent, streamed: gemini-cli. */
const generateContent: Dialect = {
  path: /:streamGenerateContent$/,
  toolResults(body) {
    const { contents } = body as { contents: { role: string; parts: GeminiPart[] }[] };
    const isSpoken = (content: { role: string; parts: GeminiPart[] }): boolean =>
      content.role === 'user' && content.parts.every((part) => part.functionResponse === undefined);
    return sinceLast(contents, isSpoken)
      .flatMap((content) => content.parts)
      .filter((part) => part.functionResponse !== undefined)
      .map((part) => textOf(part.functionResponse?.response.output ?? part.functionResponse?.response));
  },
  stream(reply) {
    const parts: object[] = reply.calls.map((call, index) => ({
      functionCall: { id: callId(reply, index), name: call.name, args: call.args },
    }));
    if (reply.text) parts.push({ text: reply.text });
    const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
    const candidates = [{ index: 0, content: { role: 'model', parts }, finishReason: 'STOP' }];
    return [{ data: { candidates, usageMetadata, modelVersion: MODEL } }];
  },
};

interface AnthropicPart {
  type: string;
  content?: unknown;
}

/** Anthropic's messages: Claude Code. */
const messages: Dialect = {
  path: /\/v1\/messages$/,
  toolResults(body) {
    const { messages } = body as { messages: { role: string; content: string | AnthropicPart[] }[] };
    const results = ({ content }: { content: string | AnthropicPart[] }): AnthropicPart[] =>
      typeof content === 'string' ? [] : content.filter((part) => part.type === 'tool_result');
    return sinceLast(messages, (message) => message.role === 'user' && results(message).length === 0)
      .flatMap(results)
      .map((part) => textOf(part.content));
  },
  stream(reply) {
    const blocks = [
      ...(reply.text
        ? [
            {
              content_block: { type: 'text', text: '' },
              delta: { type: 'text_delta', text: reply.text },
            },
          ]
        : []),
      ...reply.calls.map((call, index) => ({
        content_block: { type: 'tool_use', id: callId(reply, index), name: call.name, input: {} },
        delta: { type: 'input_json_delta', partial_json: JSON.stringify(call.args) },
      })),
    ];
    const stop_reason = reply.calls.length > 0 ? 'tool_use' : 'end_turn';
    const events = [
      {
        type: 'message_start',
        message: {
          ...{ id: `msg_${reply.turn}`, type: 'message', role: 'assistant', model: MODEL, content: [] },
          ...{ stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } },
        },
      },
      ...blocks.flatMap(({ content_block, delta }, index) => [
        { type: 'content_block_start', index, content_block },
        { type: 'content_block_delta', index, delta },
        { type: 'content_block_stop', index },
      ]),
      { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ];
    return events.map((data) => ({ event: data.type, data }));
  },
};

export const dialects: readonly Dialect[] = [chatCompletions, responses, generateContent, messages];

function callId(reply: Reply, index: number): string {
  return `call_${reply.turn}_${index}`;
}

function sinceLast<T>(items: readonly T[], isBoundary: (item: T) => boolean): T[] {
  return items.slice(items.findLastIndex(isBoundary) + 1);
}

/** Content as the APIs give it: a string, a list of parts with `text`, or some other object. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (Array.isArray(content)) return content.map((part: { text?: string }) => part.text ?? '').join('');
  return JSON.stringify(content);
}
